"""Java is looked for before Spark is started, and its absence is said plainly."""

from pathlib import Path

import pytest

from anabranch_spark.demo.__main__ import main
from anabranch_spark.jobs.java import obstacle, version


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_412"', 8),
        ("java: command not found", None),
        ("", None),
    ],
)
def test_the_major_version_is_read(text: str, major: int | None) -> None:
    assert version(text) == major


def java(folder: Path, says: str) -> None:
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("says", "stands"),
    [
        ('openjdk version "17.0.15"', None),
        ('openjdk version "25"', None),
        ('java version "1.8.0"', "is 8"),
        ("nothing of the kind", "no known version"),
    ],
)
def test_an_older_java_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, stands: str | None
) -> None:
    java(tmp_path, says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    found = obstacle()
    assert (found is None) if stands is None else (found is not None and stands in found)


def test_without_java_the_demo_makes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    assert main(["--out", str(tmp_path / "demo")]) == 3
    assert "Spark needs Java 17 or 21" in capsys.readouterr().err
    assert not (tmp_path / "demo").exists()


def test_a_java_home_without_java_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "can't be run" in (obstacle() or "")
