"""The role that stores and serves: a replica of a shard of an Erwin log (LazyLog, 4.1, 4.4, 5.2).

Nothing in `orderer` or `controller` imports it.
"""
