"""What a run reports."""

from anabranch_spark.export.report import Report, Written


def test_the_next_run_begins_after_the_last_range() -> None:
    report = Report("orders", "parquet", "out")
    assert report.next is None
    report.start = 100
    assert report.next == 100
    report.written = [Written(100, 150, "a"), Written(150, 180, "b")]
    assert report.next == 180
