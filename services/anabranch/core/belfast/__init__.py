"""SpecLog's engine, Belfast: records are delivered at predicted positions, then confirmed or
failed.

`ledger` holds what the sequencers agree on and the arithmetic of windows, `protocol` what nodes and
clients say to one another. The two roles, `sequencer` and `shard`, import these two and not each
other. No other engine imports anything from here.
"""
