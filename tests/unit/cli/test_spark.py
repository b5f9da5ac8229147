"""`anabranch spark` hands its words to the Spark package, or says what is missing."""

import sys

import pytest
from tests.commands import Command

from anabranch.cli.failure import Exit
from anabranch.cli.reference import written
from anabranch.cli.spark import spark
from anabranch_spark import cli


@pytest.mark.parametrize("missing", ["anabranch_spark", "pyspark", "pyarrow", "yaml"])
def test_what_is_missing_and_how_to_install_it_is_said(
    anabranch: Command, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    said = anabranch("spark", "gate", code=Exit.REFUSED).err
    assert f"need {missing}," in said
    assert "pip install 'anabranch[spark]'" in said
    assert "Java 17" in said
    told = anabranch("spark", "gate", "-o", "json", code=Exit.REFUSED).error
    assert told["code"] == "spark-missing"
    assert told["facts"] == {"missing": missing}
    assert "export" in anabranch("spark", "--help").out


def test_the_reference_is_the_same_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    page = written()
    for missing in ("anabranch_spark", "pyspark", "pyarrow", "yaml"):
        monkeypatch.setitem(sys.modules, missing, None)
    assert written() == page


@pytest.mark.parametrize("code", [0, 2, 3])
def test_a_jobs_exit_code_is_the_commands(
    anabranch: Command, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    given: list[tuple[str, ...]] = []

    def main(words: tuple[str, ...]) -> int:
        given.append(words)
        return code

    monkeypatch.setattr(cli, "main", main)
    anabranch("spark", "gate", "--log", "a", "--help", code=code)
    assert given == [("gate", "--log", "a", "--help")]


def test_a_job_that_is_not_there_is_no_refusal_of_data(anabranch: Command) -> None:
    assert "gaet" in anabranch("spark", "gaet", code=3).err


def test_both_lists_of_jobs_say_the_same() -> None:
    assert spark.help is not None
    width = max(map(len, cli.JOBS))
    for job, says in cli.JOBS.items():
        assert f" {job:{width}}  {says}\n" in spark.help
