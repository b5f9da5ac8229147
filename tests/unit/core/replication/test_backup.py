"""A backup takes what its primary sends in the present term, and nothing of an earlier one."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.replication.stage import Stage, led

from anabranch.core.replication.entries import Item
from anabranch.core.replication.letters import Copy, Joining, Match, Stored
from anabranch.core.types import MS


def take(stage: Stage, kind: type) -> list[Any]:
    """Letters of this kind, off the network."""
    taken = [send.message for _, send in stage.letters if isinstance(send.message, kind)]
    stage.letters = [each for each in stage.letters if not isinstance(each[1].message, kind)]
    return taken


def test_a_late_letter_of_an_earlier_term_is_dropped_before_the_present_term_is_reached() -> None:
    """Its last item was never journaled by the primary, which crashed and gave the item's place to
    another.
    """
    stage = led("a", "b")
    stage.append("a", b"x")
    stage.settle()
    stage["b"].crash(kept=True)
    stage.append("a", b"y")
    stage["a"].write()
    stage["b"].start(stage.now)
    stage.letters.clear()
    stage.arrange(1, "a", "a", "b")
    (joining,) = take(stage, Joining)
    stage.append("a", b"lost")
    stage.letters.clear()
    stage["a"].receive("b", joining)
    (late,) = take(stage, Copy)
    assert [item.batch for item in late.items] == [b"y", b"lost"]

    stage["b"].receive("a", take(stage, Match)[0])
    stage.restart("a")
    stage.letters.clear()
    stage.arrange(1, "a", "a", "b")
    stage["a"].write()
    for probe in take(stage, Copy):
        stage["b"].receive("a", probe)
    stage["a"].receive("b", take(stage, Joining)[-1])
    (following,) = take(stage, Copy)
    stage["b"].receive("a", take(stage, Match)[-1])
    stage["b"].receive("a", late)
    stage["b"].receive("a", following)
    stage.append("a", b"new")
    stage.settle()
    log = [Item(place, 1, batch) for place, batch in enumerate((b"x", b"y", b"new"))]
    assert stage["a"].told == log
    assert stage["b"].told == log
    assert stage["a"].replica.log.durable == 3


steps = st.lists(
    st.tuples(
        st.sampled_from(
            ["append"] * 3 + ["deliver"] * 4 + ["again", "lose", "write", "restart"],
        ),
        st.integers(0, 9),
    ),
    min_size=15,
    max_size=40,
)


@given(steps)
def test_a_backups_log_is_always_the_beginning_of_its_primarys(
    done: list[tuple[str, int]],
) -> None:
    """Letters are lost, repeated and late; it acknowledges no more than is on its disk."""
    stage = led("a", "b")
    late: list[tuple[str, Any]] = []
    for nth, (what, which) in enumerate(done):
        match what:
            case "append":
                stage.append("a", b"%d" % nth)
                if stage["a"].group is not None:
                    stage["a"].write()
            case "deliver" if stage.letters:
                sender, send = stage.letters.pop(which % len(stage.letters))
                late.append((sender, send))
                stage[send.to].receive(sender, send.message)
            case "again" if late:
                sender, send = late[which % len(late)]
                stage[send.to].receive(sender, send.message)
            case "lose" if stage.letters:
                stage.letters.pop(which % len(stage.letters))
            case "write" if stage["b"].group is not None:
                stage["b"].write()
            case "restart":
                stage.restart("b")
                stage.arrange(1, "a", "a", "b")
            case _:
                pass
        mine, theirs = stage["b"].told, stage["a"].told
        assert mine == theirs[: len(mine)]
        for sender, send in stage.letters:
            if sender == "b" and isinstance(send.message, Stored):
                assert send.message.upto <= len(theirs)
        assert stage["a"].replica.log.durable <= stage["b"].replica.log.last
    stage.settle()
    stage.wait(300 * MS)
    assert stage["b"].told == stage["a"].told
    assert stage["a"].replica.log.durable == len(stage["a"].told)
