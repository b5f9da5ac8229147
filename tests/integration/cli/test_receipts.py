"""Receipts: one text for the command line, HTTP and Python, redeemed after the decision."""

from typing import Any

import httpx
import pytest
from tests.commands import Command
from tests.integration.cli_server import Server

import anabranch as library
from anabranch.cli.failure import Exit
from anabranch.core.errors import RequestReused
from anabranch.core.records.record import Record


@pytest.fixture
def withheld(anabranch: Command, log: str) -> str:
    """The receipt of the second record of a log whose fork is undecided."""
    anabranch("log", "create", log)
    anabranch("append", log, "a")
    anabranch("fork", log, "plan", "--promotable")
    anabranch("append", f"{log}--plan", "planned")
    return str(anabranch("append", log, "b", "-o", "json").json["receipt"])


def test_a_receipt_is_redeemed_once_the_fork_is_decided(
    anabranch: Command, server: Server, log: str, withheld: str
) -> None:
    assert (
        f"receipts {withheld[:-1]}2 to {withheld[:-1]}3" in anabranch("append", log, "c", "d").out
    )
    pending = anabranch("receipt", "redeem", withheld, "-o", "json", code=Exit.BLOCKED).error
    assert pending["code"] == "receipt-pending"
    assert f"anabranch promote {log}--plan" in pending["message"]
    shown = anabranch("receipt", "show", withheld, "-o", "json").json
    assert shown == {
        "receipt": withheld,
        "log": log,
        "generation": 0,
        "provisional": 1,
        "position": None,
        "withheld_by": f"{log}--plan",
    }
    assert "is undecided" in anabranch("receipt", "show", withheld).out
    anabranch("promote", f"{log}--plan")
    place = {"log": log, "position": 2}
    assert anabranch("receipt", "redeem", withheld, "-o", "json").json == place
    assert anabranch("receipt", "redeem", withheld).out == f"position 2 of {log}\n"
    assert "position 2" in anabranch("receipt", "show", withheld).out
    redeemed = httpx.post(f"http://{server.http}/v1/receipts/redeem", json={"receipt": withheld})
    assert redeemed.json() == place
    with library.connect(server.url) as service:
        assert str(service.receipt(withheld)) == withheld
        assert service.receipt(withheld).position() == 2


def test_a_receipt_of_http_is_redeemed_here(
    anabranch: Command, server: Server, log: str, withheld: str
) -> None:
    records = {"records": [{"value": "c"}]}
    given = httpx.post(f"http://{server.http}/v1/logs/{log}/records", json=records).json()
    anabranch("squash", f"{log}--plan")
    assert anabranch("receipt", "redeem", given["receipt"]).out == f"position 2 of {log}\n"


def test_what_is_no_receipt_is_refused(anabranch: Command) -> None:
    for text in ("a", "1.2", "1.2.3.4"):
        assert anabranch("receipt", "redeem", text, code=Exit.REFUSED).err
        assert anabranch("receipt", "show", text, code=Exit.REFUSED).err


def test_a_request_id_is_the_same_in_all_fronts_and_for_one_request_only(
    anabranch: Command, server: Server, log: str
) -> None:
    anabranch("log", "create", log)
    url, id = f"http://{server.http}/v1/logs/{log}/records", "grün 1"
    header: Any = {"Idempotency-Key": id.encode()}
    records = [{"value": "a", "key": "k"}, {"value": None}]
    first = httpx.post(url, json={"records": records}, headers=header).json()
    assert first["position"] == 0
    same = ("append", log, "--request-id", id, "-Z", "-K:", "-o", "json")
    assert anabranch(*same, stdin=b"k:a\n:\n").json["position"] == 0
    with library.connect(server.url) as service:
        values = [Record(b"a", b"k"), Record(None)]
        assert [each.position for each in service.append(log, values, request_id=id)] == [0, 1]
        with pytest.raises(RequestReused):
            service.append(log, [b"a"], request_id=id)
        with pytest.raises(RequestReused):
            service.log(log).append(b"a", request_id=id)
    assert anabranch(*same, stdin=b"k:b\n:\n", code=Exit.REFUSED).error["code"] == "request-reused"
    refused = httpx.post(url, json={"records": records[:1]}, headers=header).json()
    assert (refused["code"], refused["status"]) == ("request-reused", 422)
    assert anabranch("log", "show", log, "-o", "json").json["tail"] == 2


def test_a_time_that_is_given_is_a_part_of_what_is_asked(
    anabranch: Command, server: Server, log: str
) -> None:
    anabranch("log", "create", log)
    append = ("append", log, "--json", "--request-id", "timed", "-o", "json")
    assert anabranch(*append, stdin=b'{"value":"a","timestamp":1}').json["position"] == 0
    assert anabranch(*append, stdin=b'{"value":"a","timestamp":1}').json["position"] == 0
    url, header = f"http://{server.http}/v1/logs/{log}/records", {"Idempotency-Key": "timed"}
    for record, status in (
        ({"value": "a", "timestamp": 1}, 201),
        ({"value": "a", "timestamp": 2}, 422),
        ({"value": "a"}, 422),
    ):
        answer = httpx.post(url, json={"records": [record]}, headers=header)
        assert answer.status_code == status
    other = anabranch(*append, stdin=b'{"value":"a","timestamp":2}', code=Exit.REFUSED)
    assert other.error["code"] == "request-reused"
    assert anabranch("log", "show", log, "-o", "json").json["tail"] == 1
