"""The role that orders: the metadata leader, the members of its group, and the leader's
housekeeping.

Nothing in `broker` imports it.
"""
