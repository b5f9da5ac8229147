"""Erwin: a log that acknowledges appends in one round trip and orders them before they are read
(LazyLog, 4 and 5; decision 58).

`protocol` has what its nodes and clients say; the roles `orderer`, `shard` and `controller` don't
import one another. No other engine imports this room.
"""
