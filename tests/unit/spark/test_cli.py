"""The jobs by name: what they are given, what they return, and that a list of them is cheap."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import anabranch_spark
from anabranch_spark import cli
from anabranch_spark.jobs.verdict import Verdict

Job = Callable[[str], None]


@pytest.fixture
def tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """Write the job `tried`, whose `main(words)` has this body."""

    def write(body: str) -> None:
        (tmp_path / "tried").mkdir()
        (tmp_path / "tried" / "__init__.py").write_text("")
        program = f"import sys\n\n\ndef main(words):\n    {body}\n"
        (tmp_path / "tried" / "__main__.py").write_text(program)

    monkeypatch.setattr(anabranch_spark, "__path__", [*anabranch_spark.__path__, str(tmp_path)])
    monkeypatch.setitem(cli.JOBS, "tried", "Only for a test.")
    for name in ("anabranch_spark.tried", "anabranch_spark.tried.__main__"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return write


@pytest.mark.parametrize("verdict", Verdict)
def test_what_a_job_returns_is_the_exit_code(tried: Job, verdict: Verdict) -> None:
    tried("return int(words[0])")
    assert cli.main(["tried", str(int(verdict))]) == verdict


def test_all_words_behind_its_name_are_the_jobs(
    tried: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    tried("print(words); return 0")
    words = ["--log", "orders", "-h", "--help", "--", "-x"]
    assert cli.main(["tried", *words]) == 0
    assert capsys.readouterr().out == f"{words}\n"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("sys.exit(2)", 3),
        ("sys.exit('why')", 3),
        ("sys.exit(0)", 0),
        ("sys.exit()", 0),
        ("from click import UsageError; raise UsageError('why')", 3),
        ("from anabranch.errors import BadRequest; raise BadRequest('a job', 'why')", 3),
    ],
)
def test_what_ends_a_job_without_a_verdict_is_no_refusal(tried: Job, body: str, code: int) -> None:
    tried(body)
    assert cli.main(["tried"]) == code


def test_a_job_that_fails_is_seen_to_fail(tried: Job) -> None:
    tried("return words['no']")
    with pytest.raises(TypeError):
        cli.main(["tried"])


def test_a_job_may_be_one_module(
    tmp_path: Path, tried: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tried.py").write_text("def main(words):\n    return len(words)\n")
    assert cli.main(["tried", "a", "b"]) == 2


@pytest.mark.parametrize("words", [["gaet"], ["--gate"], ["missing"]])
def test_a_job_that_is_not_there_is_no_refusal(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(cli.JOBS, "missing", "It isn't there.")
    assert cli.main(words) == Verdict.UNKNOWN
    assert words[0] in capsys.readouterr().err


def test_the_list_of_jobs_imports_neither_pyspark_nor_a_job() -> None:
    program = (
        "import sys; from anabranch.cli.failure import run; from anabranch.cli.main import cli\n"
        "for words in (['spark'], ['spark', '--help']):\n"
        "    assert run(cli, 'anabranch', words) == 0\n"
        "print([name for name in sys.modules if name.split('.')[0] in"
        " ('pyspark', 'pyarrow', 'yaml', 'asyncio')])\n"
        "print([name for name in sys.modules if name.split('.')[0] == 'anabranch_spark'])"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout
    heavy, ours = said.splitlines()[-2:]
    assert heavy == "[]"
    imported = ["anabranch_spark", "anabranch_spark.cli", "anabranch_spark.jobs"]
    assert sorted(eval(ours)) == [*imported, "anabranch_spark.jobs.verdict"]
    for job, says in cli.JOBS.items():
        assert said.count(says) == 2, f"both lists name {job}"
