"""A log that is there gets a lazy front (decision 67)."""

from typing import Any

import pytest

from anabranch.core.bolt.protocol.commands import (
    FORMAT,
    Batch,
    CommitObject,
    Committed,
    CreateLog,
    Description,
    EngineSettings,
    Entry,
    ForkLog,
    RaiseFormat,
    Receipt,
    RegisterBroker,
    Row,
    Sequenced,
    SetAppends,
)
from anabranch.core.bolt.protocol.fronts import (
    EndFront,
    FindReceipt,
    FrontConfiguration,
    FrontEpoch,
    FrontMark,
    FrontOpened,
    OpenFront,
    ReadFront,
)
from anabranch.core.bolt.protocol.queries import Describe
from anabranch.core.bolt.state import snapshot
from anabranch.core.bolt.state.invariants import broken
from anabranch.core.bolt.state.state import State
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.records.objects import object_id
from anabranch.core.types import Kind, LogId

FRONT = EngineSettings(sequencers=2, durability="memory")
BATCH = Batch(10, 3, producer=7, epoch=0, sequence=0)


class Logs:
    """A state with a log of which three records were appended directly."""

    def __init__(self, known: int = FORMAT) -> None:
        self.limits = Limits()
        self.state = State("c", self.limits)
        self.objects = 0
        self.apply(RaiseFormat(known))
        self.apply(RegisterBroker("b"))
        self.log = self.apply(CreateLog("orders")).id
        assert self.commit(self.log, BATCH) == 0

    def apply(self, command: Any) -> Any:
        return self.state.apply(Entry(1, b"", command))

    def ask(self, query: Any) -> Any:
        return self.state.answer(query)

    def commit(self, log: LogId, *batches: Batch, mark: FrontMark | None = None) -> Any:
        self.objects += 1
        row = Row(log, 0, list(batches), mark)
        done = self.apply(CommitObject("b", object_id(1, self.objects), [row]))
        assert isinstance(done, Committed)
        return done.rows[0]

    def through_front(self, log: LogId, number: int = 1) -> Any:
        opened = self.apply(OpenFront(log, FrontEpoch(1, 1)))
        assert isinstance(opened, FrontOpened)
        batch = Batch(10, 2, producer=9, epoch=0, sequence=2 * (number - 1))
        return self.commit(log, batch, mark=FrontMark(FrontEpoch(1, 1), number, 0))


def test_appends_go_through_the_front_from_then_on_and_come_behind_what_is_there() -> None:
    its = Logs()
    made = its.apply(SetAppends(its.log, FRONT))
    assert isinstance(made, Description)
    assert made.front is not None
    refused = its.commit(its.log, Batch(10, 1, producer=7, epoch=0, sequence=3))
    assert isinstance(refused, Refused)
    assert refused.code == "lazy-appends-only"
    assert its.through_front(its.log) == 3


def test_an_append_whose_answer_was_lost_before_is_answered_and_not_done_again() -> None:
    its = Logs()
    its.apply(SetAppends(its.log, FRONT))
    again = its.commit(its.log, BATCH)
    assert again == Sequenced([0])
    assert its.through_front(its.log) == 3


def test_a_fork_gets_a_front_of_its_own() -> None:
    its = Logs()
    fork = its.apply(ForkLog(its.log, Kind.CONTINUOUS)).id
    its.apply(SetAppends(fork, FRONT))
    assert its.through_front(fork) == 3
    assert its.commit(its.log, Batch(10, 4)) == 3, "its parent's appends stay direct"
    assert its.through_front(fork, 2) == 9
    image = snapshot.save(its.state.replica)
    assert snapshot.save(snapshot.load(image, its.limits)) == image


def test_the_same_again_changes_nothing_and_another_front_is_refused() -> None:
    its = Logs()
    made = its.apply(SetAppends(its.log, FRONT))
    its.through_front(its.log)
    assert its.apply(SetAppends(its.log, FRONT)).front == made.front
    other = its.apply(SetAppends(its.log, EngineSettings(sequencers=3, durability="memory")))
    assert other.code == "bad-request"
    assert its.through_front(its.log, 2) == 5


@pytest.mark.parametrize(
    "settings",
    [
        EngineSettings(durability="both"),
        EngineSettings(sequencers=0),
        EngineSettings(sequencers=100),
        EngineSettings(mode="m"),
        EngineSettings(shards=2),
        EngineSettings(replicas=2),
        EngineSettings(black_box="kafka://here:1/t"),
        EngineSettings(addresses=("no address",)),
    ],
    ids=repr,
)
def test_settings_that_no_front_has_are_refused(settings: EngineSettings) -> None:
    its = Logs()
    refused = its.apply(SetAppends(its.log, settings))
    assert isinstance(refused, Refused)
    assert refused.code == "bad-request"
    assert its.apply(CreateLog("lazy", front=settings)).code == "bad-request"
    assert its.commit(its.log, Batch(10, 1)) == 3


def test_a_promotable_fork_keeps_direct_appends() -> None:
    its = Logs()
    fork = its.apply(ForkLog(its.log, Kind.CONTINUOUS, promotable=True)).id
    refused = its.apply(SetAppends(fork, FRONT))
    assert refused.code == "bad-request"
    assert "parent" in refused.message


def test_members_of_an_earlier_version_are_waited_for() -> None:
    its = Logs(known=7)
    refused = its.apply(SetAppends(its.log, FRONT))
    assert refused.code == "unavailable"
    assert "upgrade" in refused.message


def test_a_front_ends_when_its_leader_says_that_its_ring_is_empty() -> None:
    its = Logs()
    its.apply(SetAppends(its.log, FRONT))
    assert its.through_front(its.log) == 3
    its.apply(SetAppends(its.log, None))
    assert its.ask(ReadFront(its.log)).ending
    direct = Batch(10, 1)
    assert its.commit(its.log, direct).code == "unavailable", "the ring may hold earlier ones"
    assert its.through_front(its.log, 2) == 5
    assert its.apply(EndFront(its.log, FrontEpoch(1, 1), 2)).code == "bad-request"
    assert its.apply(EndFront(its.log, FrontEpoch(1, 0), 4)).code == "stale-view"
    for _ in range(2):
        ended = its.apply(EndFront(its.log, FrontEpoch(1, 1), 4))
        assert isinstance(ended, FrontConfiguration)
    assert its.commit(its.log, direct) == 7
    assert its.apply(OpenFront(its.log, FrontEpoch(9, 0))).code == "bad-request"
    assert its.ask(Describe(its.log)).front is None
    assert isinstance(its.ask(FindReceipt(its.log, 3)), Receipt), "of an earlier append"
    assert its.apply(SetAppends(its.log, FRONT)).code == "bad-request"
    image = snapshot.save(its.state.replica)
    assert snapshot.save(snapshot.load(image, its.limits)) == image
    assert broken(its.state.replica) == []


def test_a_front_that_nobody_wants_to_end_goes_on() -> None:
    its = Logs()
    its.apply(SetAppends(its.log, FRONT))
    its.through_front(its.log)
    refused = its.apply(EndFront(its.log, FrontEpoch(1, 1), 2))
    assert refused.code == "bad-request"
    assert its.through_front(its.log, 2) == 5


def test_direct_appends_stay_direct_if_that_is_asked_for() -> None:
    its = Logs()
    assert its.apply(SetAppends(its.log, None)).front is None
    assert its.commit(its.log, Batch(10, 1)) == 3
