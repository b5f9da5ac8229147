"""What is known right after an action, before anybody looks again."""

import pytest

from anabranch.core.errors import ForkMoved, Squashed, UnknownBroker, UnknownLog
from anabranch.core.errors.refused import Refused
from anabranch.core.types import Kind, LogId
from anabranch_operator.plan.engine.actions import (
    Action,
    Announce,
    Apply,
    Confirm,
    Describe,
    ForgetBroker,
    JoinShard,
    MakeFork,
    Promote,
    TailLog,
    TrimOlder,
)
from anabranch_operator.plan.engine.assumptions import is_fact, learn
from anabranch_operator.plan.engine.events import Text
from anabranch_operator.plan.engine.objects import Ref
from anabranch_operator.plan.engine.world import Surroundings, World

POD, FORK = Ref("Pod", "demo", "demo-0"), Ref("Fork", "demo", "what-if")
OWNER = "k8s/demo/Fork/what-if/u"
LOG = LogId(7)
FORKS = MakeFork(parent=LogId(1), kind=Kind.CONTINUOUS, name="what-if", owner=OWNER, why="")


def world() -> World:
    return World(Surroundings(namespace="demo", release="demo"))


def refused(code: str, **facts: str | int) -> Refused:
    return Refused(code, "told by a test", dict(facts))


@pytest.mark.parametrize(
    ("action", "outcome", "fact"),
    [
        (Promote(log=LOG), refused(Squashed.code), True),
        (Describe(log="orders"), refused(UnknownLog.code), True),
        (Promote(log=LOG), refused("overloaded"), False),
        (Promote(log=LOG, expect_own=3), refused(ForkMoved.code, found=4), True),
        (Promote(log=LOG, expect_own=3), refused(ForkMoved.code, found=2), False),
        (FORKS, refused(Squashed.code, owner=OWNER), True),
        (FORKS, refused(Squashed.code, owner="somebody else's"), False),
        (ForgetBroker(broker="b", epoch=1), refused(UnknownBroker.code), True),
        (Apply(ref=POD, manifest={}), refused(UnknownLog.code), False),
        (JoinShard(log=FORK, url="", shard="s"), refused(UnknownLog.code), False),
    ],
)
def test_a_refusal_is_a_fact_if_it_says_what_became_of_what_was_asked_about(
    action: Action, outcome: Refused, *, fact: bool
) -> None:
    assert is_fact(action, outcome) == fact


def test_a_log_that_is_no_more_has_a_fate() -> None:
    known = world()
    learn(known, Promote(log=LOG), refused(Squashed.code))
    assert known.service.fates[LOG].code == Squashed.code


def test_what_was_read_trimmed_or_found_to_be_gone_is_known() -> None:
    known = world()
    learn(known, TailLog(ref=POD, lines=3), Text("the end"))
    learn(known, TrimOlder(log=LOG, before=5), None)
    learn(known, Confirm(ref=FORK, uid="u"), None)
    assert known.texts == {POD: "the end"}
    assert known.trimmed == {LOG: 5}
    assert "u" in known.absent


def test_an_event_for_people_teaches_nothing() -> None:
    known = world()
    learn(known, Announce(ref=FORK, uid="u", warning=False, reason="Serving", message=""), None)
    assert known.objects == {}


def test_an_outcome_that_an_action_cant_have_is_refused() -> None:
    with pytest.raises(AssertionError, match="Apply had the outcome None"):
        learn(world(), Apply(ref=POD, manifest={}), None)
