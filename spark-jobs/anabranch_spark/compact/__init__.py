"""Copies many small extents of logs into few objects, on many machines (decision 83).

`job` runs in the driver: it plans, takes copies to make, and has them adopted in order. `task` runs
in executors: they fetch extents, prove them, and write objects by signed URLs.
"""
