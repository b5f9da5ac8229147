"""What the pods of a cluster run: one process each, on etcd and an object store."""
