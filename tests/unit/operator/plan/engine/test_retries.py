"""Which actions count as the same thing tried again."""

from anabranch.core.types import LogId
from anabranch_operator.plan.engine.actions import (
    Act,
    Adopt,
    Announce,
    Apply,
    CreateRoot,
    ForgetBroker,
    JoinShard,
    Promote,
)
from anabranch_operator.plan.engine.objects import Ref
from anabranch_operator.plan.engine.retries import key_of

REF, OTHER = Ref("Pod", "demo", "a"), Ref("Pod", "demo", "b")
SET = Ref("SequencerSet", "demo", "orders")
ACTIONS: list[Act] = [
    Apply(ref=REF, manifest={}),
    Apply(ref=OTHER, manifest={}),
    Announce(ref=REF, uid="u", warning=False, reason="Serving", message=""),
    Announce(ref=REF, uid="u", warning=False, reason="Squashed", message=""),
    CreateRoot(name="orders", owner="k8s/demo/Log/a/1", why=""),
    CreateRoot(name="orders", owner="k8s/demo/Log/b/2", why=""),
    Adopt(log="orders", owner="k8s/demo/Log/a/1"),
    Adopt(log="orders", owner=""),
    Promote(log=LogId(1)),
    Promote(log=LogId(2)),
    ForgetBroker(broker="demo-0.1", epoch=1),
    ForgetBroker(broker="demo-0.2", epoch=1),
    JoinShard(log=SET, url="", shard="orders-0"),
    JoinShard(log=SET, url="", shard="orders-1"),
]


def test_no_action_is_held_back_by_the_failure_of_another() -> None:
    assert len({key_of(each) for each in ACTIONS}) == len(ACTIONS)


def test_an_action_is_the_same_whatever_else_about_it_has_changed() -> None:
    assert key_of(Apply(ref=REF, manifest={"spec": 1})) == key_of(Apply(ref=REF, manifest={}))
    first, later = (ForgetBroker(broker="demo-0.1", epoch=each) for each in (1, 2))
    assert key_of(first) == key_of(later)
