"""Jars that Spark needs beside its own: which, with checksums, and how they get to this machine.

`companions.toml` lists them. `python -m anabranch_spark.companions iceberg` fetches a group and
prints the paths. Jobs, tests and images import this package; it imports no pyspark.
"""
