"""Reading a log: options become a plan, a plan becomes partitions, tasks fetch and decode them.

Modules that plan import no pyspark. Only `anabranch_spark` itself and jobs import this package.
"""
