"""The notebook runs cell after cell, and prints what is stored in it."""

import contextlib
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def notebook(root: Path) -> dict[str, Any]:
    return json.loads((root / "docs" / "tutorial" / "spark.ipynb").read_text())


def code(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def stored(cell: dict[str, Any]) -> str:
    return "".join(text for each in cell["outputs"] for text in each["text"])


def test_every_cell_prints_what_is_stored(
    spark: "SparkSession", url: str, notebook: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANABRANCH_URL", url)
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(code(notebook)):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("".join(cell["source"]), f"<cell {number}>", "exec"), names)
        assert printed.getvalue() == stored(cell), f"cell {number}"


def test_outputs_are_small_and_cells_carry_no_state(notebook: dict[str, Any]) -> None:
    assert notebook["nbformat"] == 4
    for cell in code(notebook):
        assert cell["execution_count"] is None
        assert {each["name"] for each in cell["outputs"]} <= {"stdout"}
        assert len(stored(cell)) < 1_000
