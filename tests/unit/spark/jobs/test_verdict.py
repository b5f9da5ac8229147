"""A job's report reaches its reader whole."""

from pathlib import Path

import msgspec
import pytest

from anabranch_spark.jobs.verdict import Verdict, write_report


class Report(msgspec.Struct):
    verdict: Verdict
    records: int


def test_a_report_replaces_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("an older and longer report" * 100)
    write_report(Report(Verdict.REFUSED, 7), str(path))
    assert msgspec.json.decode(path.read_bytes()) == {"verdict": 2, "records": 7}
    assert [each.name for each in tmp_path.iterdir()] == ["report.json"]


def test_without_a_path_it_is_printed(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    write_report(Report(Verdict.DONE, 1), None)
    assert msgspec.json.decode(capfdbinary.readouterr().out) == {"verdict": 0, "records": 1}
