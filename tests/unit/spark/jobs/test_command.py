"""A job's exit code is a verdict, however the job ends."""

import click
import pytest

from anabranch.errors import BadRequest
from anabranch_spark.jobs.command import run
from anabranch_spark.jobs.verdict import Verdict


@click.command(name="audit")
@click.option("--end", default="")
def job(end: str) -> Verdict:
    """Ends as it is told."""
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
