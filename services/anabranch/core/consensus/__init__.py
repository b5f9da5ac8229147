"""A group that agrees on one log of entries: election, replication to a majority, and the log on
disk.

It knows no engine. Belfast's sequencing group is its user today (docs/decisions/0027-consensus.md).
"""
