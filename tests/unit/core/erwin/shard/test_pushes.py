"""Mode st: how long a shard waits for the data of rows, and what it tells the leader of them."""

from tests.unit.core.erwin.shard.erwin_stage import Stage, batch

from anabranch.core.erwin.protocol.letters import Pushed
from anabranch.core.erwin.protocol.rows import Fence, Mode, Row
from anabranch.core.limits import Limits
from anabranch.core.sequencing.protocol.ids import AppendId

LIMITS = Limits(noop_ms=1_000)
LATER = Fence(2, 1)


def stage() -> Stage:
    return Stage(mode=Mode.ST, limits=LIMITS)


def data(stage: Stage, sequence: int) -> None:
    for node in ("a1", "a2"):
        stage.data(node, batch(f"v{sequence}", sequence=sequence))


def row(first: int, sequence: int) -> Row:
    return Row(first, 1, 0, AppendId(7, 0, sequence))


def test_rows_that_were_announced_before_wait_no_longer_than_the_leader_says() -> None:
    """Data that is missing in several groups is given up at the same time."""
    st = stage()
    st.push("a1", 0, [row(0, 1), row(1, 2)], waits_ms=[600, 200])
    st.push("a1", 2, [row(2, 3)], waits_ms=[100])
    st.push("a1", 3, [row(3, 4)])
    data(st, 4)
    st.sleep(599)
    assert st.pushed("a1").upto == 0
    st.sleep(1)
    assert st.pushed("a1").upto == 4
    voided = [p for _, each in st.told("a1") if isinstance(each, Pushed) for p in each.voided]
    assert voided == [0, 1, 2], "the leader is told, once"


def test_a_row_whose_wait_is_shorter_than_one_before_it_is_given_up_in_time() -> None:
    st = stage()
    st.push("a1", 0, [row(0, 1)], waits_ms=[900])
    st.push("a1", 1, [row(1, 2)], waits_ms=[300])
    data(st, 1)
    assert st.pushed("a1").upto == 1
    st.sleep(300)
    assert st.pushed("a1").upto == 2


def test_the_leader_learns_how_much_more_was_sent_than_announced() -> None:
    st = stage()
    size = len(batch("v1", sequence=1))
    data(st, 1)
    data(st, 2)
    st.push("a1", 0, [row(0, 1)], announced_bytes=1)
    assert st.pushed("a1").excess_bytes == size - 1
    st.push("a1", 1, [row(1, 2)], announced_bytes=size)
    assert st.pushed("a1").excess_bytes == size - 1
    data(st, 3)
    st.push("a1", 2, [row(2, 3)], announced_bytes=0)
    assert st.pushed("a1").excess_bytes == 2 * size - 1
    data(st, 4)
    st.push("a1", 0, [row(0, 4)], fence=LATER, announced_bytes=size)
    assert st.pushed("a1").excess_bytes == 0, "the next leader counts anew"
