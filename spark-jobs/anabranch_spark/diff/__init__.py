"""The difference of two logs: by position as the service knows it, by key as Spark reads it.

`ranges` and `report` are plain; `contents` is all of Spark; `job` asks the service.
"""
