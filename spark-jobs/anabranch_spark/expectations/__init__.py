"""What data must look like: declared as YAML or Python, judged in one pass, reported with pictures.

An expectation that can't be judged fails. No module here opens a connection; only `judge` imports
pyspark.
"""
