"""What earlier versions wrote is read as they would have read it: a journal and a snapshot of each
format, kept as they were written.
"""

from pathlib import Path

import msgspec
import pytest

from anabranch.core.bolt.metadata.leader import blank, replayed
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.bolt.protocol.queries import Describe, Listing, ListLogs
from anabranch.core.bolt.state import snapshot
from anabranch.core.bolt.state.invariants import broken
from anabranch.core.bolt.state.replica import Replica
from anabranch.core.bolt.state.state import State
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits

FORMATS = sorted(Path(__file__).parent.glob("format_*"))


@pytest.mark.parametrize("folder", FORMATS, ids=lambda folder: folder.name)
def test_a_journal_of_an_earlier_format_gives_what_its_snapshot_holds(folder: Path) -> None:
    groups = msgspec.msgpack.decode((folder / "journal").read_bytes(), type=list[bytes])
    image = (folder / "snapshot").read_bytes()
    state = replayed("old", Limits(), None, groups)
    loaded = blank("old", Limits())
    loaded.replica = snapshot.load(image, loaded.replica.limits)
    expected = saved_without_words(loaded.replica)
    assert saved_without_words(state.replica) == expected
    assert broken(loaded.replica) == []
    for cut in range(len(groups)):
        first = snapshot.save(replayed("old", Limits(), None, groups[:cut]).replica)
        rest = replayed("old", Limits(), first, groups[cut:])
        assert saved_without_words(rest.replica) == expected


def saved_without_words(replica: Replica) -> bytes:
    """What a refusal says, and of what facts it speaks, may change from version to version."""
    plain = snapshot.load(snapshot.save(replica), replica.limits)
    plain.requests.clear()
    for request, at, outcome in replica.requests.items():
        kept = Refused(outcome.code, "", {}) if isinstance(outcome, Refused) else outcome
        plain.requests.remember(request, at, kept)
    for grave in plain.forest.graves.values():
        grave.refusal = Refused(grave.refusal.code, "", {})
    return snapshot.save(plain)


def test_what_format_4_holds_is_all_there() -> None:
    """Owners, guards, origins and requests apart; and every log is one of Bolt's own."""
    state = State("old", Limits())
    image = (Path(__file__).parent / "format_4" / "snapshot").read_bytes()
    state.replica = snapshot.load(image, Limits())
    listing = state.answer(ListLogs())
    assert isinstance(listing, Listing)
    assert {(log.engine, log.settings) for log in listing.logs} == {("bolt", None)}
    tails = {log.name: log.tail for log in listing.logs}
    assert (tails["log13"], tails["log4--fork-20"]) == (34, 63)
    assert [log.owner for log in listing.logs if log.owner] == ["c71"]
    assert (state.replica.format, state.replica.guards) == (4, {"scope": 7})
    assert len([*state.replica.appends.items()]) == 3


def test_what_format_1_holds_is_all_there() -> None:
    state = State("old", Limits())
    image = (Path(__file__).parent / "format_1" / "snapshot").read_bytes()
    state.replica = snapshot.load(image, Limits())
    listing = state.answer(ListLogs())
    assert [log.name for log in getattr(listing, "logs", [])] == [
        *(f"log-{number}" for number in range(4)),
        "orders",
        "orders--alone",
        "orders--kept",
    ]
    orders = state.answer(Describe("orders"))
    assert isinstance(orders, Description)
    assert (orders.tail, orders.start, orders.generation, orders.owner) == (9, 1, 1, "")
    refused = [getattr(state.answer(Describe(f"orders--{n}")), "code", "") for n in ("gone", "x")]
    assert refused == ["squashed", "unknown-log"]
    assert [seat.roots for seat in state.replica.placement.pool()] == [5, 0, 0, 0]
    assert (state.replica.format, state.replica.guards) == (1, {})
