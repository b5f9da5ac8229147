"""Logs that can be forked, as programs hold them: appends, reads, subscriptions, forks."""
