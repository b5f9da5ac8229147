"""What sequencers, shards and clients of Belfast say to one another, and how it is checked.

It imports `ledger`; both roles and the client may import it.
"""
