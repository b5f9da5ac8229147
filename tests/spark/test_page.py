"""The examples of docs/howto/spark.md run as they stand."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_howto_of_spark_is_a_program_that_runs(
    spark: "SparkSession",
    url: str,
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = (root / "docs" / "howto" / "spark.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    program = "\n".join(blocks).replace("anabranch://127.0.0.1:7420", url)
    for folder in ("fruit", "both"):
        program = program.replace(f'"{folder}/', f'"{tmp_path}/{folder}/')
    exec(program, {})
    said = capsys.readouterr().out
    assert "|       3|" in said
    assert "7 figs" in said
    assert said.endswith("3 records\n7 records of both\n")
