"""The role that stores and delivers: a replica of a shard, its appends, reports and subscriptions
(Belfast, 4.1 to 4.3).

Nothing in `sequencer` imports it.
"""
