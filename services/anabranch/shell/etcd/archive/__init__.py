"""The journal's copy in the bucket, and an etcd rebuilt from it (docs/decisions/0018)."""
