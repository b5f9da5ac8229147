"""The simulator: a whole cluster in one thread; a seed decides its clock, network and disks.

`world` is shared; `bolt`, `belfast` and `kubernetes` simulate one engine or the operator each.
"""
