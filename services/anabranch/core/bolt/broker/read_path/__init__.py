"""How a broker serves reads and subscriptions: which bytes, from the cache or the store, in whose
turn.

Used by the broker's machine, and by compaction for its copies.
"""
