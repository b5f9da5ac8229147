"""The commands of docs/howto/spark-audit.md and spark-analytics.md, as they stand."""

import json
import shlex
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.documents import blocks
from tests.integration.server_process import running

import anabranch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


PYTHON = "python -m "


def job(command: str) -> int:
    """The exit code of one command."""
    module, *words = shlex.split(command.removeprefix(PYTHON))
    main: Callable[[list[str]], int] = import_module(f"{module}.__main__").main
    return main(words)


def test_the_howto_of_audits_and_comparisons_runs(
    spark: "SparkSession", root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = "docs/howto/spark-audit.md"
    commands = [line for block in blocks(root) if block.page == page for line in block.commands]
    assert all(each.startswith(PYTHON) for each in commands)
    with running(tmp_path / "data") as process:
        url = f"anabranch://127.0.0.1:{process.port}"
        monkeypatch.setenv("ANABRANCH_URL", url)
        monkeypatch.chdir(tmp_path)
        with anabranch.connect(url) as service:
            orders = service.create("orders")
            orders.append(b"3 apples", key=b"ada")
            orders.sfork("what-if").append(b"5 apples", key=b"ada")
        codes = [(each.split(".")[1].split()[0], job(each)) for each in commands]
    assert codes == [("audit", 0)] * 2 + [("diff", 2)] * 3
    report = json.loads((tmp_path / "audit.json").read_bytes())
    assert [each["log"] for each in report["logs"]] == ["orders", "orders--what-if"]
    (row,) = spark.read.parquet(str(tmp_path / "changes")).collect()
    assert (row["change"], bytes(row["value_b"])) == ("changed", b"5 apples")


@pytest.mark.usefixtures("spark")
def test_the_howto_of_questions_runs(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = "docs/howto/spark-analytics.md"
    commands = [line for block in blocks(root) if block.page == page for line in block.commands]
    with running(tmp_path / "data") as process:
        url = f"anabranch://127.0.0.1:{process.port}"
        monkeypatch.setenv("ANABRANCH_URL", url)
        monkeypatch.chdir(tmp_path)
        with anabranch.connect(url) as service:
            stock = service.create("stock")
            stock.append_many([b'{"kind": "order", "item": "figs", "quantity": 90}', b"figs"])
            plan = stock.sfork("plan")
            plan.append(b'{"kind": "order", "item": "figs", "quantity": 20}')
        assert [job(each) for each in commands] == [0, 0, 2]
    report = json.loads((tmp_path / "plan.json").read_bytes())
    assert (report["records"], report["malformed"], report["first_malformed"]) == (3, 1, 1)
    assert report["findings"]["rows"][0]["lowest"] == -70
