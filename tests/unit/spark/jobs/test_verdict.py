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


def test_a_link_that_somebody_left_beside_a_report_is_not_written_through(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text("of somebody else")
    for name in ("report.json", "report.json.part"):
        (tmp_path / name).symlink_to(theirs)
    write_report(Report(Verdict.DONE, 1), str(tmp_path / "report.json"))
    assert theirs.read_text() == "of somebody else"
    assert msgspec.json.decode((tmp_path / "report.json").read_bytes())["records"] == 1


def test_what_is_no_file_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    device = tmp_path / "stdout"
    device.symlink_to("/dev/null")
    write_report(Report(Verdict.DONE, 1), str(device))
    assert device.is_char_device()
    assert [each.name for each in tmp_path.iterdir()] == ["stdout"]


def test_a_report_that_cant_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for name in ("folder", "nowhere/report.json"):
        with pytest.raises(OSError, match="directory"):
            write_report(Report(Verdict.DONE, 1), str(tmp_path / name))
    assert [each.name for each in tmp_path.rglob("*")] == ["folder"]


def test_without_a_path_it_is_printed(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    write_report(Report(Verdict.DONE, 1), None)
    assert msgspec.json.decode(capfdbinary.readouterr().out) == {"verdict": 0, "records": 1}
