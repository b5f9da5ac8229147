"""Requests are remembered apart from the logs they were about (decision 38)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from anabranch.core.bolt.protocol.commands import (
    FORMAT,
    Batch,
    CommitObject,
    Committed,
    CreateLog,
    DeleteLog,
    Description,
    Entry,
    ForkLog,
    Promote,
    RaiseFormat,
    Receipt,
    RegisterBroker,
    Row,
    Sequenced,
    Squash,
)
from anabranch.core.bolt.state import snapshot
from anabranch.core.bolt.state.requests import APART_FORMAT, LOG_FORMAT
from anabranch.core.bolt.state.state import State
from anabranch.core.errors import AnabranchError
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.producers import REQUEST_EPOCH, request_identity
from anabranch.core.records.objects import object_id
from anabranch.core.types import Kind, LogId

MEMORY_MS, MIN_MS, MAX = 1_000, 100, 4
LIMITS = Limits(request_memory_ms=MEMORY_MS, request_memory_min_ms=MIN_MS, requests_max=MAX)
NOWHERE = LogId(0)
FORK = "root--f"


class Stage:
    """A state machine and what somebody who writes everything down would expect of it."""

    def __init__(self, knows: int = FORMAT, logs_max: int = 10) -> None:
        self.state = State("c", replace(LIMITS, logs_max=logs_max))
        self.now, self.objects = 1_000, 0
        self.kept: list[tuple[int, int, int | Receipt]] = []
        self.do(RaiseFormat(knows))
        self.do(RegisterBroker("b"))
        self.root = self.do(CreateLog("root")).id

    def do(self, command: Any, request: bytes = b"") -> Any:
        return self.state.apply(Entry(self.now, request, command))

    def id(self, name: str) -> LogId:
        try:
            return self.state.replica.forest.find(name).id
        except AnabranchError:
            return NOWHERE

    def append(
        self,
        name: str,
        key: str,
        *,
        log: LogId | None = None,
        epoch: int = REQUEST_EPOCH,
        digest: int = 0,
    ) -> Any:
        """Under a key, as the fronts do: to the log of this name, or to none."""
        self.objects += 1
        batch = Batch(10, 1, request_identity(name, key), epoch, 0, digest)
        row = Row(self.id(name) if log is None else log, 0, [batch])
        done = self.do(CommitObject("b", object_id(1, self.objects), [row], self.objects))
        assert isinstance(done, Committed)
        result = done.rows[0]
        return result.batches[0] if isinstance(result, Sequenced) else result

    def fork(self, *, promotable: bool = False) -> None:
        self.do(ForkLog(self.root, Kind.CONTINUOUS, "f", promotable=promotable))

    def reopen(self) -> None:
        image = snapshot.save(self.state.replica)
        self.state.replica = snapshot.load(image, LIMITS)
        assert snapshot.save(self.state.replica) == image

    def expect(self, name: str, key: str) -> int | Receipt | None:
        """What is remembered, naively: everything young, and of the middle-aged what there is room
        for.
        """
        self.kept = [each for each in self.kept if each[1] >= self.now - MEMORY_MS]
        asked = request_identity(name, key)
        return next((outcome for identity, _, outcome in self.kept if identity == asked), None)

    def note(self, name: str, key: str, outcome: int | Receipt) -> None:
        self.kept.append((request_identity(name, key), self.now, outcome))

    def make_room(self) -> bool:
        while len(self.kept) >= MAX and self.kept[0][1] < self.now - MIN_MS:
            del self.kept[0]
        return len(self.kept) < MAX


NAMES = ("root", FORK)
STEPS = st.one_of(
    st.tuples(st.just("append"), st.sampled_from(NAMES), st.sampled_from("abc")),
    st.tuples(st.just("fork"), st.booleans()),
    st.tuples(st.sampled_from(["squash", "promote", "reopen"])),
    st.tuples(st.just("wait"), st.sampled_from([1, 50, 150, 1_200])),
)


@given(st.lists(STEPS, max_size=40))
def test_a_key_gets_its_first_outcome_for_as_long_as_a_naive_memory_keeps_it(
    steps: list[tuple[Any, ...]],
) -> None:
    stage = Stage()
    for step in steps:
        match step:
            case ("append", name, key):
                check_append(stage, name, key)
            case ("fork", promotable):
                stage.fork(promotable=promotable)
            case ("squash",):
                stage.do(Squash(stage.id(FORK)))
            case ("promote",):
                stage.do(Promote(stage.id(FORK)))
            case ("wait", ms):
                stage.now += ms
            case _:
                stage.reopen()


def check_append(stage: Stage, name: str, key: str) -> None:
    expected = stage.expect(name, key)
    there = stage.id(name) != NOWHERE
    before = sum(len(log.index) and log.index.upto[-1] for log in logs(stage)) if there else 0
    outcome = stage.append(name, key)
    if expected is not None:
        assert outcome == expected
    elif not there:
        assert isinstance(outcome, Refused)
    elif isinstance(outcome, Refused):
        assert outcome.code == "overloaded"
        assert not stage.make_room()
    else:
        assert stage.make_room()
        stage.note(name, key, outcome)
        return
    if there:
        after = sum(len(log.index) and log.index.upto[-1] for log in logs(stage))
        assert after == before, "nothing was appended again"


def logs(stage: Stage) -> list[Any]:
    return list(stage.state.replica.forest.logs.values())


def test_a_blocked_append_under_a_key_is_not_remembered_as_refused() -> None:
    stage = Stage()
    stage.fork()
    stage.do(ForkLog(stage.root, Kind.CONTINUOUS, "try", promotable=True))
    assert stage.append(FORK, "k").code == "append-blocked"
    stage.do(Promote(stage.id("root--try")))
    first = stage.append(FORK, "k")
    stage.do(ForkLog(stage.root, Kind.CONTINUOUS, "again", promotable=True))
    assert stage.append(FORK, "k") == first == 0, "also while the log is blocked"


def test_one_row_may_hold_the_same_request_twice() -> None:
    stage = Stage()
    batch = Batch(10, 1, request_identity("root", "k"), REQUEST_EPOCH, 0)
    row = Row(stage.root, 0, [batch, batch, Batch(10, 1)])
    done = stage.do(CommitObject("b", object_id(1, 1), [row], 0))
    assert done.rows == [Sequenced([0, 0, 1])]


def test_what_was_appended_before_requests_were_kept_apart_is_found() -> None:
    """By a key of HTTP, whose batch was then its producer's only one, of epoch 0."""
    for epoch in (0, REQUEST_EPOCH):
        stage = Stage(knows=APART_FORMAT - 1)
        stage.fork(promotable=True)
        fork = stage.id(FORK)
        first = stage.append(FORK, "k", epoch=epoch)
        stage.do(RaiseFormat(APART_FORMAT))
        assert stage.append(FORK, "k") == first
        stage.do(Promote(fork))
        assert stage.append(FORK, "k", log=fork) == Receipt(fork, 0, first)


@pytest.mark.parametrize("knows", [APART_FORMAT - 1, APART_FORMAT])
def test_a_refusal_that_may_pass_is_remembered_only_in_journals_of_before(knows: int) -> None:
    """A replay of older entries must not make what was not made then."""
    stage = Stage(knows=knows, logs_max=1)
    assert stage.do(CreateLog("other"), b"k").code == "too-many"
    stage.do(DeleteLog(stage.root))
    again = stage.do(CreateLog("other"), b"k")
    assert isinstance(again, Refused) == (knows < APART_FORMAT)


def test_a_refusal_that_cant_pass_is_repeated() -> None:
    stage = Stage()
    assert stage.do(CreateLog("root"), b"k").code == "log-exists"
    stage.do(DeleteLog(stage.root))
    assert stage.do(CreateLog("root"), b"k").code == "log-exists"
    assert isinstance(stage.do(CreateLog("root"), b"l"), Description)
    assert stage.do(Squash(NOWHERE), b"m").code == "unknown-log"


def test_appends_leave_room_for_the_requests_that_change_logs() -> None:
    stage = Stage()
    for key in range(MAX):
        stage.append("root", str(key))
    assert stage.append("root", "more").code == "overloaded"
    assert isinstance(stage.do(CreateLog("other"), b"k"), Description)


def test_an_id_that_is_used_again_for_something_else_is_refused() -> None:
    stage = Stage()
    create = CreateLog("other")
    first = stage.state.apply(Entry(stage.now, b"k", create, digest=7))
    again = stage.state.apply(Entry(stage.now, b"k", create, digest=7))
    assert first == again
    for _ in range(2):
        reused = stage.state.apply(Entry(stage.now, b"k", CreateLog("third"), digest=8))
        assert isinstance(reused, Refused)
        assert reused.code == "request-reused"
    assert stage.id("third") == NOWHERE
    stage.reopen()
    assert stage.state.apply(Entry(stage.now, b"k", create, digest=7)) == first
    reused = stage.state.apply(Entry(stage.now, b"k", create, digest=8))
    assert isinstance(reused, Refused)


@pytest.mark.parametrize(("first", "then"), [(0, 0), (0, 7), (7, 0)])
def test_requests_of_versions_without_digests_match_as_before(first: int, then: int) -> None:
    stage = Stage()
    made = stage.state.apply(Entry(stage.now, b"k", CreateLog("other"), digest=first))
    stage.reopen()
    assert stage.state.apply(Entry(stage.now, b"k", CreateLog("x"), digest=then)) == made
    placed = stage.append("root", "k", digest=first)
    stage.reopen()
    assert stage.append("root", "k", digest=then) == placed == 0


def test_an_append_whose_id_was_used_for_other_records_is_refused_wherever_its_log_is() -> None:
    stage = Stage()
    stage.fork(promotable=True)
    assert stage.append(FORK, "k", digest=7) == 0
    assert stage.append(FORK, "k", digest=8).code == "request-reused"
    stage.do(Promote(stage.id(FORK)))
    assert stage.append(FORK, "k", digest=8).code == "request-reused"
    stage.reopen()
    assert stage.append(FORK, "k", digest=8).code == "request-reused"
    assert stage.append(FORK, "k", digest=7) == 0


def test_a_blocked_append_whose_id_was_used_for_other_records_is_refused_and_not_kept_waiting() -> (
    None
):
    stage = Stage()
    stage.fork()
    assert stage.append(FORK, "k", digest=7) == 0
    stage.do(ForkLog(stage.root, Kind.CONTINUOUS, "try", promotable=True))
    assert stage.append(FORK, "k", digest=8).code == "request-reused"
    assert stage.append(FORK, "k", digest=7) == 0


def steal(stage: Stage, key: str, digest: int = 0) -> Any:
    """What a stranger may send who has no right but to append to `other`."""
    stage.objects += 1
    batch = Batch(10, 1, request_identity("root", key), REQUEST_EPOCH, 0, digest)
    row = Row(stage.id("other"), 0, [batch])
    return stage.do(CommitObject("b", object_id(1, stage.objects), [row], stage.objects)).rows[0]


@pytest.mark.parametrize("digest", [7, 8], ids=["the same records", "other records"])
def test_a_request_id_that_was_used_at_another_log_is_a_new_one_here(digest: int) -> None:
    """A stranger who guesses the id shan't have the append refused, or taken for a repetition."""
    stage = Stage()
    stage.do(CreateLog("other"))
    for _ in range(3):
        stage.append("other", "x", epoch=0)
    stage.append("other", "y", digest=7)
    assert isinstance(stage.append("root", "first"), int)
    stolen = steal(stage, "k", digest)
    assert isinstance(stolen, int)
    assert stage.append("root", "k", digest=7) == 1, "it is appended"
    stage.reopen()
    assert stage.append("root", "k", digest=7) == 1, "and then it is known"
    assert stage.append("root", "k", digest=9).code == "request-reused"
    assert isinstance(again := steal(stage, "k", digest), Sequenced)
    assert again.batches == [stolen]
    stage.do(DeleteLog(stage.root))
    assert stage.append("root", "k", digest=7).code == "unknown-log", "one of them isn't its own"


def test_a_stranger_learns_nothing_of_a_request_at_another_log() -> None:
    stage = Stage()
    stage.do(CreateLog("other"))
    stage.append("root", "first")
    assert stage.append("root", "k", digest=7) == 1
    assert steal(stage, "k", 7) == 0, "an append like any other"


def test_an_append_of_before_is_known_at_every_log() -> None:
    """Which log it was appended to wasn't remembered then."""
    stage = Stage(knows=LOG_FORMAT - 1)
    stage.do(CreateLog("other"))
    stage.append("root", "first")
    assert stage.append("root", "k", digest=7) == 1
    stage.reopen()
    stage.do(RaiseFormat(LOG_FORMAT))
    stage.reopen()
    assert stage.append("root", "k", digest=7) == 1
    assert stage.append("root", "k", digest=8).code == "request-reused"
    assert isinstance(steal(stage, "k", 7), Sequenced)
    assert stage.append("root", "later", digest=7) == 2


def test_an_identity_is_forgotten_with_its_last_log() -> None:
    stage = Stage()
    stage.do(CreateLog("other"))
    stage.append("root", "k", digest=7)
    stage.now += MEMORY_MS - 1
    steal(stage, "k", 7)
    stage.now += 2
    stage.do(DeleteLog(stage.id("other")))
    assert stage.append("other", "k", log=NOWHERE).code == "unknown-log"
    assert stage.append("root", "k", digest=7) == 1, "the first one is forgotten: it is done again"
    stage.reopen()
