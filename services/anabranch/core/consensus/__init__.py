"""A group that agrees on one log of entries: election, replication to a majority, and the log on
disk.

It imports no engine. Belfast's sequencing group uses it (docs/decisions/0027-consensus.md); what
every user must hold is in tests/unit/core/consensus/conformance.py.
"""
