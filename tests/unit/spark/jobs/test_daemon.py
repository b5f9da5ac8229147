"""The daemon of workers imports the pyspark that is installed."""

from anabranch_spark.jobs.daemon import without_zip

ZIP = "/env/pyspark/python/lib/pyspark.zip"


def test_the_zip_of_the_installed_package_is_left_out() -> None:
    path = ["", ZIP, "/env/pyspark/python/lib/py4j-src.zip", "/env", "/jobs/pyspark.zip"]
    assert without_zip(path, "/env/pyspark") == [path[0], *path[2:]]


def test_any_other_zip_stays() -> None:
    assert without_zip([ZIP, "/env"], "/other/pyspark") == [ZIP, "/env"]
    assert without_zip([ZIP], None) == [ZIP]
