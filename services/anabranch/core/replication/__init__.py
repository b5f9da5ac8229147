"""One log on several replicas: a primary, its backups, terms and journals. Its owner arranges who
is primary, and says what a quorum is (docs/decisions/0028-replicas.md, 0045-quorums-and-views.md).

It imports no engine. Belfast's shards use it, with a majority as their quorum; what every user must
hold is in tests/unit/core/replication/conformance.py.
"""
