"""One log on several replicas, arranged by somebody else: a primary, its backups, terms and
journals.

It knows no engine. Belfast's shards are its users today (docs/decisions/0028-replicas.md).
"""
