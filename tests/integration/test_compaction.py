"""Small extents copied together by a real server, under whoever reads, appends and forks."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.integration.cli_server import Server

import anabranch
from anabranch import Events, Log, Service
from anabranch.cli.failure import Exit, run
from anabranch.cli.main import PROGRAM, cli
from anabranch.errors import PlanEnded

APPENDS = 80
FEW = 15
DEADLINE_S = 60.0
LOOK_S = 0.02
LIMITS = """
[limits]
compact_extents_min = 4
compact_age_ms = 0
gc_interval_ms = 20
grace_ms = 1000
cache_bytes = 1
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    settings = tmp_path / "settings.toml"
    settings.write_text(LIMITS)
    with Server.started(tmp_path, "--config", str(settings)) as server:
        yield server


def wait(until: Callable[[], bool]) -> None:
    pause, deadline = Event(), time.monotonic() + DEADLINE_S
    while not until():
        assert time.monotonic() < deadline
        pause.wait(LOOK_S)


def values(log: Log) -> list[bytes | None]:
    return [record.value for record in log.read(0)]


def few_extents(service: Service) -> bool:
    return service.survey().extents <= FEW


def followed(events: Events, count: int) -> list[bytes | None]:
    """What a subscriber has, once it has so many records."""
    seen: list[bytes | None] = []
    while len(seen) < count:
        came = events.take(timeout=DEADLINE_S)
        assert came, f"{len(seen)} of {count} came"
        for event in came:
            match event:
                case anabranch.Deliver(record):
                    seen.append(record.value)
                case anabranch.Fail(since):
                    del seen[since:]
                case _:
                    pass
    return seen


def test_nobody_who_reads_appends_or_forks_can_tell(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    with anabranch.connect(server.url) as service:
        orders = service.create("orders")
        expected = [b"%d" % turn for turn in range(APPENDS)]
        with orders.subscribe(0) as events:
            for value in expected:
                orders.append(value)  # one object each
            live = orders.cfork("live")
            past = orders.sfork("past", past=41)
            past.append(b"otherwise")
            plan = orders.cfork("plan", promotable=True)
            plan.append(b"planned")
            orders.append(b"held")
            wait(lambda: few_extents(service))
            plan.promote()
            seen = followed(events, APPENDS + 2)
        after = [*expected, b"planned", b"held"]
        assert seen == values(orders) == values(live) == after
        assert values(past) == [*expected[:42], b"otherwise"]
        wait(lambda: service.survey().garbage_objects == 0)
        assert values(orders) == after
        assert len([*(server.data / "objects").rglob("*")]) < APPENDS, "old objects are gone"
    server.process.terminate()
    server.process.wait()
    assert run(cli, PROGRAM, ["fsck", "--data", str(server.data), "-o", "json"]) == Exit.OK
    assert json.loads(capsys.readouterr().out)["sound"] is True


def test_a_planned_scan_reads_the_objects_themselves_after_their_grace(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    with anabranch.connect(server.url) as service:
        orders = service.create("orders")
        expected = [b"%d" % turn for turn in range(20)]
        for value in expected:
            orders.append(value)  # one object each
        with orders.plan_scan(2) as plan:
            slices = [piece for page in plan.pages(7) for piece in page]
            for turn in range(20):
                orders.append(b"later %d" % turn)
            wait(lambda: service.plans().held_objects > 0)
            elsewhere = service.scan_plan(plan.description)
            assert elsewhere.renew().expires > plan.description.began
            places = elsewhere.sign(slices)
            files = {place.object: Path(urlsplit(place.url).path).read_bytes() for place in places}
            read = {
                position: record.value
                for piece in slices
                for position, record in piece.records(
                    files[piece.object][piece.offset : piece.offset + piece.length]
                )
            }
            assert read == dict(enumerate(expected[2:], 2))
            listed = _asked(capsys, "plans", "-o", "json", "--url", server.url)
            assert [each["name"] for each in listed["plans"]] == ["orders"]
            ended = _asked(capsys, "plans", "end", listed["plans"][0]["id"], "--url", server.url)
            assert ended == {"ended": f"{plan.description.id:016x}"}
            with pytest.raises(PlanEnded, match="ended by request"):
                plan.renew()
        wait(lambda: service.survey().garbage_objects == 0)
        assert _asked(capsys, "plans", "erase", "--force", "--url", server.url)["plans"] == 0


def test_the_howto_of_scans_is_a_program_that_runs(
    server: Server, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (root / "docs" / "howto" / "scans.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(block.replace("anabranch://127.0.0.1:7420", server.url), {})
    assert capsys.readouterr().out.splitlines() == ["1 b'second'", "2 b'third'"]


def _asked(capsys: pytest.CaptureFixture[str], *args: str) -> Any:
    capsys.readouterr()
    assert run(cli, PROGRAM, [*args, *([] if "-o" in args else ["-o", "json"])]) == Exit.OK
    return json.loads(capsys.readouterr().out)
