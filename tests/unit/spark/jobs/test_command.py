"""A job's exit code is a verdict, however the job ends."""

from pathlib import Path

import click
import pytest

from anabranch.errors import BadRequest
from anabranch_spark.jobs.command import NEW_FILE, run
from anabranch_spark.jobs.verdict import Verdict


@click.command(name="audit")
@click.option("--end", default="")
@click.option("--report", type=NEW_FILE)
def job(end: str, report: str | None) -> Verdict:
    """Ends as it is told."""
    assert report is None or Path(report).absolute().parent.is_dir()
    if end == "error":
        raise BadRequest("an audit", "it can't be had")
    if end == "disk":
        raise OSError("the disk is full")
    if end == "interrupt":
        raise KeyboardInterrupt
    return Verdict[end]


@pytest.mark.parametrize("verdict", [*Verdict])
def test_what_the_job_returns_is_the_exit_code(verdict: Verdict) -> None:
    assert run(job, ["--end", verdict.name]) == verdict


@pytest.mark.parametrize("words", [["--emd", "DONE"], ["more"], ["--end", "error"],
                                   ["--end", "disk"], ["--end", "interrupt"]])  # fmt: skip
def test_whatever_goes_wrong_the_verdict_is_open(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(job, words) == Verdict.UNKNOWN
    assert capsys.readouterr().err


def test_help_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(job, ["--help"]) == Verdict.DONE
    assert "Ends as it is told" in capsys.readouterr().out


def test_a_report_that_no_folder_takes_is_refused_before_the_job_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(job, ["--end", "DONE", "--report", str(tmp_path / "a.json")]) == Verdict.DONE
    assert run(job, ["--end", "DONE", "--report", str(tmp_path / "no/a.json")]) == Verdict.UNKNOWN
    assert "there is no folder" in capsys.readouterr().err
    assert run(job, ["--end", "DONE", "--report", str(tmp_path)]) == Verdict.UNKNOWN
