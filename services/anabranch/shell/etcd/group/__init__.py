"""A group's journal and election in etcd: layout, journal, reader, follower, coordinator."""
