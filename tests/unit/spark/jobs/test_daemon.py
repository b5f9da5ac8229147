"""The daemon of workers imports what is installed."""

from anabranch_spark.jobs.daemon import without_archives


def test_archives_of_the_installed_package_are_left_out() -> None:
    archives = ["/env/pyspark/python/lib/pyspark.zip", "/env/pyspark/jars/spark-core.jar"]
    others = ["", "/env", "/env/pyspark-extras", "/jobs/pyspark.zip"]
    assert without_archives([*archives, *others], "/env/pyspark") == others


def test_archives_of_another_package_stay() -> None:
    path = ["/env/pyspark/python/lib/pyspark.zip", "/env"]
    assert without_archives(path, "/other/pyspark") == path
