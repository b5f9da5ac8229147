"""The simulator: a whole cluster in one thread; a seed decides its clock, network and disks."""
