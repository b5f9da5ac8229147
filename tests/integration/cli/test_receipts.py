"""Receipts: one text for the command line, HTTP and Python, redeemed after the decision."""

import httpx
import pytest
from tests.integration.cli_server import Command, Server

import anabranch as library
from anabranch.cli.failure import Exit


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
