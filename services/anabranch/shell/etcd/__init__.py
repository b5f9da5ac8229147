"""etcd behind `ports.Journal` and `ports.Coordinator` (docs/decisions/0011-etcd.md).

`api` is etcd's own API as far as we use it, `group` the journal and election on it, `archive` the
journal's copy in the bucket.
"""
