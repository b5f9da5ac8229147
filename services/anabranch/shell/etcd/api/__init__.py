"""etcd's API as far as we use it: calls, transactions, watches, leases, disk space."""
