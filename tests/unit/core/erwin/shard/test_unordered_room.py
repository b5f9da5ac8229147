"""Mode st: the room that unordered data may take at a replica, and whose it is."""

import pytest
from tests.unit.core.erwin.shard.erwin_stage import Stage, batch

from anabranch.core.askers import REQUEST_BITS, seat_number
from anabranch.core.errors.refused import Refused
from anabranch.core.erwin.protocol.messages import Data, Stored
from anabranch.core.erwin.protocol.rows import Mode, Row
from anabranch.core.erwin.shard.unordered import Unordered
from anabranch.core.limits import Limits
from anabranch.core.sequencing.protocol.ids import AppendId


def stage(limits: Limits) -> Stage:
    return Stage(mode=Mode.ST, limits=limits)


def data(stage: Stage, sequence: int, *nodes: str) -> list[int]:
    content = batch(f"v{sequence}", sequence=sequence)
    return [stage.data(node, content) for node in nodes or ("a1", "a2")]


def row(first: int, sequence: int) -> Row:
    return Row(first, 1, 0, AppendId(7, 0, sequence))


def code(stage: Stage, token: int) -> str:
    refused = stage.answer(token)
    assert isinstance(refused, Refused), refused
    return refused.code


def unordered(stage: Stage, node: str) -> Unordered:
    return stage.nodes[node].machine.unordered


@pytest.mark.parametrize("principals", [(1, 2), (0, 0)])
def test_one_client_leaves_others_room_for_unordered_data(principals: tuple[int, int]) -> None:
    """It sends what it announces nowhere. Where clients aren't told apart, it is its producer."""
    size = len(batch("v1", sequence=1))
    st = stage(Limits(unordered_bytes_max=8 * size))
    bad, good = ((seat_number(each, 1) << REQUEST_BITS) for each in principals)
    tokens = [st.ask("a1", Data(1, 0, batch(f"v{n}", sequence=n)), bad | n) for n in range(1, 9)]
    stored = [st.answer(token) == Stored() for token in tokens]
    assert stored == [True] * 4 + [False] * 4
    other = batch("v9", sequence=9, producer=8)
    assert st.answer(st.ask("a1", Data(1, 0, other), good | 9)) == Stored()
    st.push("a1", 0, [row(0, 1), row(1, 2)])
    st.push("a1", 2, [], stable=2)
    again = Data(1, 0, batch("v8", sequence=8))
    assert st.answer(st.ask("a1", again, bad | 10)) == Stored(), "what is ordered takes no room"


def test_unordered_data_is_bounded_and_orphans_do_not_keep_others_out() -> None:
    size = len(batch("v1", sequence=1))
    st = stage(Limits(unordered_bytes_max=4 * size, orphan_ms=10_000))
    data(st, 1)
    data(st, 2)
    assert code(st, data(st, 3, "a1")[0]) == "overloaded"
    st.sleep(12_000)
    assert st.answer(data(st, 3, "a1")[0]) == Stored()
    assert st.answer(data(st, 4, "a1")[0]) == Stored()
    assert code(st, data(st, 5, "a1")[0]) == "overloaded"
    st.push("a1", 0, [row(0, 3)])
    st.push("a1", 1, [], stable=1)
    assert len(unordered(st, "a1")) == 1
    assert unordered(st, "a1").held_bytes == size
