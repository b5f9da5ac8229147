"""The role that orders: a member of the sequencing group, and what its leader decides about quotas,
windows, lag, stragglers and membership (Belfast, 4.1 to 4.8).

Nothing in `shard` imports it.
"""
