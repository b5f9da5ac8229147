"""The simulated surroundings of machines: time, network, disks, an object store, etcd."""
