"""Each rule of the witness, broken by one letter or one answer."""

import pytest
from tests.unit.core.erwin.invariants.erwin_scene import (
    LEADER,
    MEMBERS,
    Scene,
    batch_of,
    configuration,
    id_of,
    push,
    row,
    view,
)

from anabranch.core.erwin.protocol.rows import Fence
from anabranch.core.machine import Replies, Reply, Request, Requests
from anabranch.core.sequencing.protocol.letters import Prepare, Prepared, Start
from anabranch.core.sequencing.protocol.messages import (
    Append,
    AppendMeta,
    AskTail,
    Found,
    Tail,
    Taken,
)
from anabranch.core.sequencing.view import Ballot


def test_a_log_that_keeps_the_rules_breaks_none() -> None:
    scene = Scene()
    scene.settle(row(1, 0), row(2, 1, shard=1))
    scene.say(LEADER, push(row(3, 2), row(4, 3)))
    scene.seal("seq-1", 1)
    scene.configure(view(2, base=2))
    scene.say(LEADER, push(row(4, 2), view=2, base=2))
    scene.held(0, 3, view=2)
    scene.dropped(3, view=2)
    scene.say(LEADER, push(view=2, base=2, stable=3))
    assert scene.violations == []
    assert scene.witness.order.stable == 3


def test_e3_stable_is_ordered_at_every_member() -> None:
    scene = Scene()
    scene.say(LEADER, push(row(1, 0)))
    scene.held(0, 1)
    scene.say(LEADER, push(stable=1))
    assert scene.rules == {"E3"}


def test_e3_an_old_leader_calls_nothing_stable_above_a_new_ones_base() -> None:
    scene = Scene()
    scene.say(LEADER, push(row(1, 0)))
    scene.held(0, 1)
    scene.seal("seq-1", 1)
    scene.configure(view(2))
    scene.say(LEADER, push(row(2, 0), view=2))
    scene.dropped(1)
    scene.say(LEADER, push(stable=1))
    assert "E3" in scene.rules


def test_e4_stable_is_held_by_the_shards_of_its_rows() -> None:
    scene = Scene()
    scene.say(LEADER, push(row(1, 0), row(2, 1, shard=1)))
    scene.held(0, 2)
    scene.dropped(2)
    scene.say(LEADER, push(stable=2))
    assert scene.rules == {"E4"}


def test_e4_a_shard_holds_no_more_than_was_pushed() -> None:
    scene = Scene()
    scene.say(LEADER, push(row(1, 0)))
    scene.held(0, 2)
    assert scene.rules == {"E4"}


def test_e6_only_the_leader_of_a_view_pushes() -> None:
    scene = Scene()
    scene.say(MEMBERS[1], push(row(1, 0)))
    scene.say(LEADER, push(row(1, 0), view=2))
    assert len(scene.violations) == 2
    assert scene.rules == {"E6"}


ASKED = (
    Append(1, 0, batch_of(1)),
    AppendMeta(1, 0, id_of(1), 1, 100, "a"),
    AskTail(1),
)


@pytest.mark.parametrize("message", ASKED, ids=lambda message: type(message).__name__)
def test_e6_a_sealed_member_takes_nothing(message: Append | AppendMeta | AskTail) -> None:
    scene = Scene()
    answer = Tail(0, 0) if isinstance(message, AskTail) else Taken()
    scene.witness.on_event("seq-1", Requests([1, 2], [message, message]))
    scene.seal("seq-1", 1)
    scene.witness.observe("seq-1", Replies([1, 2], [answer, answer]))
    assert scene.violations == [], "both were asked before the seal"
    scene.witness.on_event("seq-1", Request(3, message))
    scene.witness.observe("seq-1", Reply(3, answer))
    assert scene.rules == {"E6"}


def test_e6_only_members_take_what_is_of_a_view() -> None:
    scene = Scene()
    scene.witness.on_event("seq-2", Request(1, ASKED[0]))
    scene.witness.observe("seq-2", Reply(1, Taken()))
    scene.witness.observe("seq-1", Reply(9, Taken()))
    assert len(scene.violations) == 2
    assert scene.rules == {"E6"}


def test_e6_there_is_one_view_of_a_number() -> None:
    scene = Scene()
    scene.say("controller-1", Start(view(1, members=("seq-1",))))
    assert scene.rules == {"E6"}


def test_e6_a_view_begins_when_the_one_before_is_sealed_and_its_members_are_prepared() -> None:
    scene = Scene()
    scene.configure(view(2))
    assert scene.rules == {"E6"}
    scene = Scene()
    scene.say("controller-0", Start(view(2)))
    assert scene.rules == {"E6"}


def test_e6_a_member_that_prepares_again_in_a_later_life_changes_nothing() -> None:
    """The question was on its way for long, and the configuration is sent again."""
    scene = Scene()
    scene.seal("seq-0", 1)
    begun = view(2)
    scene.configure(begun)
    again = Prepared(ballot=begun.ballot, node="seq-0", life=7, base=begun.base)
    scene.say("seq-0", again)
    scene.say("controller-0", Start(begun))
    assert scene.violations == []


def test_e6_a_state_is_copied_from_a_sealed_member() -> None:
    scene = Scene()
    scene.say("controller-0", Prepare(ballot=Ballot(2, 1), source="seq-1"))
    assert scene.rules == {"E6"}
    scene = Scene()
    scene.seal("seq-1", 1)
    scene.say("controller-0", Prepare(ballot=Ballot(2, 1), source="seq-1"))
    assert scene.violations == []


def test_e8_there_is_one_configuration_of_a_version() -> None:
    scene = Scene()
    scene.seal("seq-1", 1)
    scene.configure(view(2))
    assert scene.violations == []
    scene.configure(view(2), lost=((1, 5),))
    assert scene.rules == {"E8"}


def test_e1_a_view_is_given_up_when_all_its_members_are_lost() -> None:
    scene = Scene()
    scene.witness.on_loss("seq-0")
    scene.configure(view(2), lost=((1, 5),))
    assert scene.rules == {"E1"}
    scene = Scene()
    for member in MEMBERS:
        scene.witness.on_loss(member)
    scene.configure(view(2), lost=((1, 5),))
    assert scene.violations == []
    assert scene.witness.lost == {1}


@pytest.mark.parametrize("started", [False, True])
def test_e8_only_a_view_that_nobody_started_is_given_up_for_the_one_before(
    *, started: bool
) -> None:
    scene = Scene()
    scene.seal("seq-0", 1)
    scene.configure(view(2))
    if started:
        scene.say("controller-0", Start(view(2)))
    scene.say("controller-0", configuration(3, view(1)))
    assert scene.rules == ({"E8"} if started else set())


@pytest.mark.parametrize("heard", [False, True])
def test_e4_a_log_whose_view_is_lost_goes_on_with_what_shards_have_taken(*, heard: bool) -> None:
    scene = Scene()
    scene.say(LEADER, push(row(1, 0)))
    scene.seal("seq-0", 1)
    scene.configure(view(2))
    scene.say(LEADER, push(view=2))
    fence = Fence(2 if heard else 1, 1)
    for name in "ab":
        scene.present(name, fence)
    for member in MEMBERS:
        scene.witness.on_loss(member)
    scene.configure(view(3, base=1), lost=((2, 5),))
    scene.say(LEADER, push(view=3, base=1))
    assert scene.rules == ({"E4"} if heard else set())


@pytest.mark.parametrize("started", [False, True])
def test_e1_a_view_that_nobody_started_is_no_loss_beside_sealed_members(*, started: bool) -> None:
    scene = Scene()
    scene.seal("seq-0", 1)
    scene.configure(view(2, members=("seq-1",)))
    if started:
        scene.say("controller-0", Start(view(2, members=("seq-1",))))
    scene.witness.on_loss("seq-1")
    scene.say("controller-0", configuration(3, view(2, members=("seq-1",)), ((2, 5),)))
    assert scene.rules == (set() if started else {"E1"})


def test_e5_a_receipt_is_of_a_stable_position() -> None:
    scene = Scene()
    scene.settle(row(1, 0))
    scene.witness.observe(LEADER, Reply(1, Found(0)))
    assert scene.violations == []
    scene.witness.observe(LEADER, Reply(1, Found(1)))
    assert scene.rules == {"E5"}, "nobody has pushed that"


def test_e5_a_receipt_is_as_good_as_a_stable_position() -> None:
    scene = Scene()
    scene.say(LEADER, push(row(1, 0), row(2, 1)))
    scene.held(0, 2)
    scene.dropped(1)
    scene.witness.observe(LEADER, Reply(1, Found(0)))
    assert scene.violations == []
    assert scene.witness.order.stable == 1
    scene.witness.observe(LEADER, Reply(2, Found(1)))
    assert scene.rules == {"E3"}
