"""The simulator: a whole cluster in one thread, on a clock, a network and disks that a seed decides."""
