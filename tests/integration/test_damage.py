"""A damaged object costs the records in it: every front reads those before and those behind it."""

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.cli_server import ANABRANCH, Server

import anabranch
from anabranch.cli.failure import Exit
from anabranch.client.session.records import Deliver
from anabranch.core.errors import RecordsDamaged

RECORDS, LOST = 12, 5


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that has nothing in its cache, and one of whose objects has a flipped bit."""
    above = tmp_path_factory.mktemp("damage")
    with Server.started(above) as server, anabranch.connect(server.url) as service:
        orders = service.create("orders")
        for turn in range(RECORDS):
            orders.append(b"%d" % turn)
    objects = sorted(path for path in (above / "data" / "objects").rglob("0*") if path.is_file())
    _flip(objects[LOST])
    with Server.started(above, http=True) as server:
        yield server


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[66] ^= 1
    path.write_bytes(content)


def test_python_reads_up_to_the_damage_and_on_behind_it(damaged: Server) -> None:
    with anabranch.connect(damaged.url) as service:
        orders = service.log("orders")
        values: list[bytes | None] = []
        with pytest.raises(RecordsDamaged) as refused:
            values += (each.value for each in orders.read())
        facts = refused.value.facts
        assert (facts["log"], facts["position"], facts["after"]) == ("orders", LOST, LOST + 1)
        assert str(facts["object"]).startswith("local-")
        after = facts["after"]
        assert isinstance(after, int)
        assert [each.value for each in orders.read(after)] == _values(LOST + 1, RECORDS)


def test_a_subscription_ends_at_the_damage_and_another_goes_on_behind_it(damaged: Server) -> None:
    with anabranch.connect(damaged.url) as service:
        orders = service.log("orders")
        values: list[bytes | None] = []
        start: Any = 0
        while len(values) < RECORDS - 1:
            try:
                with orders.subscribe(start) as events:
                    for event in events:
                        if isinstance(event, Deliver):
                            values.append(event.record.value)
                        if len(values) == RECORDS - 1:
                            break
            except RecordsDamaged as error:
                start = error.facts["after"]
        assert values == _values(0, LOST) + _values(LOST + 1, RECORDS)


def test_the_command_line_prints_up_to_the_damage_and_on_behind_it(damaged: Server) -> None:
    def read(*options: str) -> subprocess.CompletedProcess[str]:
        command = [*ANABRANCH, "read", "orders", "--format", "raw", *options]
        return subprocess.run(
            command, env=damaged.environment, capture_output=True, text=True, check=False
        )

    first = read()
    assert first.returncode == Exit.DAMAGE
    assert first.stdout.split() == [str(turn) for turn in range(LOST)]
    assert f"reading goes on at {LOST + 1}" in first.stderr
    second = read("--from", str(LOST + 1))
    assert second.returncode == Exit.OK
    assert second.stdout.split() == [str(turn) for turn in range(LOST + 1, RECORDS)]


def test_http_pages_end_at_the_damage_and_begin_behind_it(damaged: Server) -> None:
    page = _page(damaged, 0)
    assert [each["position"] for each in page["records"]] == list(range(LOST))
    assert page["next"] == LOST
    problem = _page(damaged, LOST)
    assert problem["code"] == "records-damaged"
    assert problem["facts"]["after"] == LOST + 1
    page = _page(damaged, LOST + 1)
    assert [each["position"] for each in page["records"]] == list(range(LOST + 1, RECORDS))


def _page(server: Server, start: int) -> Any:
    url = f"http://{server.http}/v1/logs/orders/records?from={start}"
    try:
        with urllib.request.urlopen(url) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as refused:
        with refused:
            return json.load(refused)


def _values(first: int, upto: int) -> list[bytes]:
    return [b"%d" % turn for turn in range(first, upto)]
