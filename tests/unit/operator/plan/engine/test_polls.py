"""Looks at the log service: one at a time, and each answer says what to plan again."""

from tests.unit.described import described

from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.machine import SetTimer
from anabranch.core.types import MS, Kind, LogId
from anabranch_operator.api import names
from anabranch_operator.plan.engine.events import Look, Viewed
from anabranch_operator.plan.engine.objects import Observed, Ref
from anabranch_operator.plan.engine.polls import LOOK, ServicePoll
from anabranch_operator.plan.engine.world import Surroundings, World

FORK = Ref(names.FORK, "demo", "what-if")
POOL = Ref(names.POOL, "demo", "demo")


def world() -> World:
    made = World(Surroundings(namespace="demo", release="demo", look_ms=2_000))
    made.observe(Observed(ref=POOL, uid="pool", version=1, body={"spec": {"image": "x"}}))
    spec = {"parent": {"name": "orders"}}
    made.observe(Observed(ref=FORK, uid="fork", version=1, body={"spec": spec}))
    return made


def viewed(tail: int) -> Description:
    owner = names.owner("demo", names.FORK, "what-if", "fork")
    return described(
        LogId(1),
        "orders--what-if",
        kind=Kind.CONTINUOUS,
        root="orders",
        parent="orders",
        tail=tail,
        settled=tail,
        depth=1,
        owner=owner,
    )


def test_a_second_look_waits_for_the_answer_to_the_first() -> None:
    poll = ServicePoll(world())
    assert list(poll.start()) == [Look()]
    assert list(poll.start()) == []
    assert poll.finish(7) == SetTimer(LOOK, 7 + 2_000 * MS)
    assert list(poll.start()) == [Look()]


def test_after_the_first_look_everything_is_planned() -> None:
    assert {POOL, FORK} <= set(ServicePoll(world()).view(Viewed((), ()), lambda _: False))


def test_a_silent_log_service_is_news_once() -> None:
    poll = ServicePoll(world())
    assert FORK in poll.miss("nobody answers")
    assert poll.miss("nobody answers") == []
    assert FORK in poll.view(Viewed((), ()), lambda _: False)


def test_a_fork_that_only_grew_waits_for_its_deferred_status_write() -> None:
    poll = ServicePoll(world())
    poll.view(Viewed((viewed(tail=1),), ()), lambda _: False)
    assert poll.view(Viewed((viewed(tail=2),), ()), lambda ref: ref == FORK) == []
    assert FORK in poll.view(Viewed((viewed(tail=3),), ()), lambda _: False)
