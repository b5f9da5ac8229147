"""Job `export`: a log's settled records to Parquet files, or to a table of Iceberg or Delta.

A log is exported range by range. `ranges`, `names`, `progress` and `lineage` decide what is
written next and import no pyspark; `parquet`, `iceberg` and `delta` write it.
"""
