"""The story: an agent plans restocks on a fork, the gate finds its mistake, and the second plan
comes true.
"""

from typing import Any

import anabranch
from anabranch_spark.analytics.events import orders
from anabranch_spark.demo.plans import EXPECTATIONS, mistaken, restocks
from anabranch_spark.demo.stage import Stage

ORDERS = 20_000
LOG = "orders"
EXPECTED = "expectations.yaml"
PAGE = "gate.html"
FILES = "parquet"
WAREHOUSE = "warehouse"
TABLE = "lake.shop.orders"


def play(stage: Stage) -> None:
    """From the first order to the exported table."""
    with anabranch.connect(stage.url) as service:
        log = feed(stage, service)
        short = shortages(stage)
        refused(stage, log, short)
        own = promoted(stage, log, short)
        assert log.describe().settled == ORDERS + own
        exported(stage, ORDERS + own)


def feed(stage: Stage, service: anabranch.Service) -> anabranch.Log:
    tell = stage.narrator
    tell.title(f"A log of {ORDERS:,} orders and restocks")
    log = service.create(LOG, why="what the shop sells, and what comes in")
    log.append_many(orders(ORDERS))
    tell.tell(f"They are in `{LOG}`, each durable and at its position.")
    return log


def shortages(stage: Stage) -> list[dict[str, Any]]:
    tell = stage.narrator
    tell.title("Which items run out? Spark reads the log from the object store")
    findings = stage.job("analytics", "supply", LOG)["findings"]
    tell.tell(f"{findings['found']} items do. No byte of the records went through the service:")
    tell.show(
        [
            f"{row['item']}: {-row['lowest']} too few, for the first time at {row['first_short']}"
            for row in findings["rows"][:3]
        ]
    )
    return findings["rows"]


def refused(stage: Stage, log: anabranch.Log, short: list[dict[str, Any]]) -> None:
    tell = stage.narrator
    tell.title("An agent plans restocks, on a fork that may be promoted")
    fork = log.cfork("plan-a", promotable=True, why="restock what runs out")
    fork.append_many(mistaken(restocks(short)))
    (stage.folder / EXPECTED).write_text(EXPECTATIONS, encoding="utf-8")
    tell.tell(f"`{fork.name}` has a restock for each item. The gate judges what it added:")
    report = _gate(stage, fork, codes=(2,))
    tell.tell("The gate refuses, with exit code 2:")
    tell.show([f"{each['name']}: {each['reason']}" for each in _not_passed(report)])
    tell.tell(
        f"Nothing of it reached `{log.name}`. The agent's fork is squashed, and it tries again."
    )
    fork.squash()


def promoted(stage: Stage, log: anabranch.Log, short: list[dict[str, Any]]) -> int:
    """How many records the second plan has."""
    tell = stage.narrator
    tell.title("The second plan passes, and is promoted as it was judged")
    fork = log.cfork("plan-b", promotable=True, why="restock what runs out")
    plan = restocks(short)
    fork.append_many(plan)
    report = _gate(stage, fork, "--promote")
    tell.tell(
        f"{report['reason']}. Its {report['own_records']} records are in `{log.name}` now; had one "
        "been added after the gate read them, the promotion would have been refused."
    )
    return len(plan)


def exported(stage: Stage, records: int) -> None:
    tell = stage.narrator
    tell.title("The log as Parquet files and as an Iceberg table")
    files = stage.job(
        "export", LOG, "--to", "parquet", str(stage.folder / FILES), "--records", "8000"
    )
    assert files["records"] == records
    tell.tell("Each file's name says its positions, so a repeated run writes nothing twice:")
    tell.show([each["where"] for each in files["written"]])
    warehouse = str(stage.folder / WAREHOUSE)
    table = stage.job("export", LOG, "--to", "iceberg", TABLE, "--warehouse", warehouse)
    assert table["records"] == records
    tell.tell(
        f"The table {TABLE} has {table['records']:,} rows; its snapshot says which positions."
    )


def _gate(stage: Stage, fork: anabranch.Log, *words: str, codes: tuple[int, ...] = (0,)) -> Any:
    page = str(stage.folder / PAGE)
    return stage.job("gate", EXPECTED, "--log", fork.name, "--html", page, *words, codes=codes)


def _not_passed(report: Any) -> list[dict[str, Any]]:
    return [each for each in report["results"] if each["status"] != "passed"]
