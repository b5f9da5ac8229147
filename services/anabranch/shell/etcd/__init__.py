"""etcd behind `ports.Journal` and `ports.Coordinator` (docs/decisions/0011-etcd.md)."""
