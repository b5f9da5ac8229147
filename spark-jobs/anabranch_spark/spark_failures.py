"""What Spark raises where it can't do what it should."""

from py4j.protocol import Py4JError  # pyright: ignore[reportMissingTypeStubs]
from pyspark.errors import PySparkException

SPARK_FAILURES: tuple[type[Exception], ...] = (PySparkException, Py4JError)
