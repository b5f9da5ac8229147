"""The examples of docs/howto/spark-export.md, as they stand but for the folders."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.documents import blocks

import anabranch
from anabranch_spark.export.__main__ import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = "docs/howto/spark-export.md"
FETCHED = "python -m anabranch_spark.export "


@pytest.fixture
def url(own_service: Callable[..., tuple[Any, str]]) -> str:
    """A service of its own: the page's log has a name that other tests may take."""
    return own_service()[1]


@pytest.fixture
def orders(service: anabranch.Service) -> anabranch.Log:
    """`orders`, whose values are such that each example can be run."""
    log = service.create("orders")
    log.append_many([b'{"item":"figs","quantity":%d}' % turn for turn in range(40)])
    return log


@pytest.mark.nightly  # seven exports, one after the other
def test_every_example_does_what_the_page_says(
    tables: "SparkSession",
    url: str,
    orders: anabranch.Log,
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANABRANCH_URL", url)
    fork = orders.cfork("what-if")
    fork.append(b'{"item":"figs","quantity":500}')
    seen: list[str] = []
    for block in blocks(root):
        if block.page != PAGE:
            continue
        if block.language == "sql":
            (row,) = tables.sql(block.text).collect()
            assert row[0] == 41
            seen.append("sql")
        for line in block.commands:
            if line.startswith(FETCHED):
                seen.append(_run(line, tmp_path, len(seen)))
    assert seen == ["parquet", "iceberg", "delta", "parquet", "iceberg", "sql"]
    assert _count(tables.read.format("delta").load(f"{tmp_path}/data2/orders-delta")) == 40


def _run(line: str, folder: Path, turn: int) -> str:
    """The form that was exported to. Only with the schema a folder of its own is needed."""
    place = f"{folder}/data{3 if '--schema' in line else 2}"
    words = shlex.split(line.removeprefix(FETCHED).replace("/data", place))
    assert main([*words, "--report", f"{folder}/report-{turn}.json"]) == 0, line
    return words[words.index("--to") + 1]


def _count(frame: Any) -> int:
    return frame.count()
