"""Reading a log as a stream: offsets, how much a micro-batch takes, and where a query ends.

Offsets and admission import no pyspark. Only the data source and `anabranch_spark` itself import
this package.
"""
