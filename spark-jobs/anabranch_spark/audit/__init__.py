"""The audit: is every log what the service says that it is?

Executors read each extent, verify it, and sum its batches; the driver compares with what the
service keeps (decision 78). Of these modules only `planning`, `job`, `reading`, `task` and
`__main__` reach for a service, a store or Spark.
"""
