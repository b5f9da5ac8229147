"""Receipts in place of positions that are withheld: shown, waited for and redeemed."""

import pytest
from tests.commands import Command

from anabranch.cli.failure import Exit


@pytest.fixture
def receipt(ask: Command, log: str) -> str:
    ask("append", log, "a")
    ask("fork", log, "plan", "--promotable")
    ask("append", f"{log}--plan", "planned", "more")
    return ask("append", log, "held", "-o", "json").json["receipt"]


def test_before_the_decision_a_receipt_says_what_it_waits_for(
    ask: Command, log: str, receipt: str
) -> None:
    shown = ask("receipt", "show", receipt, "-o", "json").json
    assert (shown["log"], shown["position"], shown["withheld_by"]) == (log, None, f"{log}--plan")
    rows = ask("receipt", "show", receipt).out.splitlines()
    assert rows[-1].split(maxsplit=1) == ["now", f"withheld: {log}--plan is undecided"]
    for options in ((), ("--wait", "1ms")):
        said = ask("receipt", "redeem", receipt, *options, code=Exit.BLOCKED).err
        assert f"`anabranch promote {log}--plan` or `anabranch squash {log}--plan`" in said


@pytest.mark.parametrize(("verb", "position"), [("promote", 3), ("squash", 1)])
def test_after_the_decision_it_is_worth_a_position(
    ask: Command, log: str, receipt: str, verb: str, position: int
) -> None:
    ask(verb, f"{log}--plan")
    assert ask("receipt", "redeem", receipt).out == f"position {position} of {log}\n"
    assert ask("receipt", "redeem", receipt, "--wait", "1h", "-o", "json").json == {
        "log": log,
        "position": position,
    }
    shown = ask("receipt", "show", receipt, "-o", "json").json
    assert (shown["position"], shown["withheld_by"]) == (position, None)
    (read,) = ask("read", log, "--from", str(position), "-o", "json").lines
    assert read["value"] == "held"


@pytest.mark.parametrize("text", ["", "a", "1", "1.2", "1.2.3.4", "1.-2.3", "x.0.1", "1.0.x"])
def test_what_is_no_receipt_is_refused(ask: Command, text: str) -> None:
    for verb in ("show", "redeem"):
        error = ask("receipt", verb, text, "-o", "json", code=Exit.REFUSED).error
        assert error["code"] == "bad-request"


def test_a_receipt_of_no_log_is_not_taken_for_a_name(ask: Command) -> None:
    said = ask("receipt", "redeem", "999999.0.1", code=Exit.REFUSED).err
    assert "the receipt 999999.0.1: there is no such log" in said


def test_a_receipt_of_a_log_that_is_gone_still_names_it(
    ask: Command, log: str, receipt: str
) -> None:
    ask("squash", f"{log}--plan")
    ask("log", "delete", log, "--force")
    ask("receipt", "redeem", receipt, code=Exit.REFUSED)
    ask("receipt", "show", receipt, code=Exit.REFUSED)
