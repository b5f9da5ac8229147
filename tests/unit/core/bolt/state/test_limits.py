"""Every limit that the state holds: granted at it, refused one past it with nothing changed."""

from __future__ import annotations

import pytest

from anabranch.core.bolt.logs.lineage import Lineage
from anabranch.core.bolt.protocol.commands import (
    Batch,
    Command,
    CommitCursor,
    Committed,
    CreateLog,
    Description,
    Entry,
    ForkLog,
    Outcome,
    Promote,
    Receipt,
    Sequenced,
    Squash,
)
from anabranch.core.bolt.protocol.queries import (
    Listing,
    ListLogs,
    ResolveReceipt,
    Settled,
)
from anabranch.core.bolt.state.invariants import broken
from anabranch.core.bolt.state.state import State
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.types import Kind, LogId
from anabranch_sim.bolt.twins import Twins, portrait

ROOT = LogId(1)


def told(state: State, command: Command, request: bytes = b"", at: int = 1) -> Outcome:
    return state.apply(Entry(at, request, command))


def fork(of: int, name: str | None = None, **rest: object) -> ForkLog:
    return ForkLog(LogId(of), Kind.CONTINUOUS, name, **rest)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("limits", "granted", "refused", "code"),
    [
        (Limits(name_chars_max=5), [CreateLog("abcde")], CreateLog("abcdef"), "bad-name"),
        (Limits(name_chars_max=5), [fork(1, "abcde")], fork(1, "abcdef"), "bad-name"),
        (
            Limits(name_chars_max=5),
            [CommitCursor(ROOT, "abcde", 0)],
            CommitCursor(ROOT, "abcdef", 0),
            "bad-name",
        ),
        (
            Limits(note_chars_max=3),
            [CreateLog("b", "who", "why")],
            CreateLog("c", "whom", "why"),
            "bad-request",
        ),
        (
            Limits(note_chars_max=3),
            [fork(1, by="who", why="why")],
            fork(1, by="who", why="why?"),
            "bad-request",
        ),
        (
            Limits(note_chars_max=3),
            [fork(1), fork(1), Squash(LogId(2), "who")],
            Squash(LogId(3), "whom"),
            "bad-request",
        ),
        (Limits(logs_max=3), [CreateLog("b"), fork(1)], CreateLog("c"), "too-many"),
        (Limits(logs_max=3), [CreateLog("b"), fork(1)], fork(1), "too-many"),
        (Limits(forks_per_log_max=2), [fork(1), fork(1)], fork(1), "too-many"),
        (Limits(depth_max=2), [fork(1), fork(2)], fork(3), "too-many"),
        (
            Limits(cursors_per_log_max=1),
            [CommitCursor(ROOT, "a", 0), CommitCursor(ROOT, "a", 0)],
            CommitCursor(ROOT, "b", 0),
            "too-many",
        ),
        (Limits(ttl_ms_max=9), [fork(1, ttl_ms=9)], fork(1, ttl_ms=10), "bad-request"),
        (Limits(), [fork(1, ttl_ms=1)], fork(1, ttl_ms=0), "bad-request"),
    ],
)
def test_a_limit_is_granted_and_one_past_it_refused(
    limits: Limits, granted: list[Command], refused: Command, code: str
) -> None:
    state = State("c", limits)
    told(state, CreateLog("a"))
    for command in granted:
        assert not isinstance(told(state, command), Refused), command
    before = portrait(state)
    outcome = told(state, refused)
    assert isinstance(outcome, Refused)
    assert outcome.code == code
    assert portrait(state) == before
    assert broken(state.replica) == []


@pytest.mark.parametrize(
    "name", ["", "-a", "a-", ".", "a b", "a/b", "a--b", "ä", "a\n", "a@b", "a\0"]
)
def test_a_name_that_is_no_legal_topic_is_refused(name: str) -> None:
    state = State("c", Limits())
    told(state, CreateLog("a"))
    for command in (CreateLog(name), fork(1, name), CommitCursor(ROOT, name, 0)):
        outcome = told(state, command)
        assert isinstance(outcome, Refused)
        assert outcome.code == "bad-name"


def test_a_fork_without_a_name_gets_one_that_is_free() -> None:
    state = State("c", Limits())
    told(state, CreateLog("a"))
    told(state, fork(1, "fork-3"))
    named = [told(state, fork(1)) for _ in range(2)]
    assert [log.name for log in named if isinstance(log, Description)] == [
        "a--fork-3-1",
        "a--fork-4",
    ]


def produce(twins: Twins, log: LogId, producer: int, at: int) -> object:
    command = twins.laid_out([(log, [Batch(10, 1, producer=producer)])])
    outcome = twins.state.apply(Entry(at, b"", command))
    assert isinstance(outcome, Committed)
    (result,) = outcome.rows
    return result


def test_one_producer_too_many_waits_until_another_is_forgotten() -> None:
    twins = Twins(Limits(producers_per_log_max=2, producer_idle_ms=100))
    root = twins.root("a")
    assert produce(twins, root, 0, 5_000) == 0
    assert produce(twins, root, 1, 5_050) == 1
    log = twins.state.replica.forest.logs[root]
    result = produce(twins, root, 2, 5_100)
    assert isinstance(result, Sequenced)
    assert isinstance(result.batches[0], Refused)
    assert result.batches[0].code == "overloaded"
    assert [*log.producers] == [0, 1]
    assert log.index.records == 2
    assert produce(twins, root, 2, 5_101) == 2
    assert [*log.producers] == [1, 2]


def test_one_request_too_many_waits_until_another_is_forgotten() -> None:
    limits = Limits(requests_max=2, request_memory_ms=500, request_memory_min_ms=100)
    state = State("c", limits)
    first = told(state, CreateLog("a"), b"1", at=1_000)
    told(state, CreateLog("b"), b"2", at=1_050)
    before = portrait(state)
    outcome = told(state, CreateLog("c"), b"3", at=1_100)
    assert isinstance(outcome, Refused)
    assert outcome.code == "overloaded"
    assert portrait(state) == before
    assert told(state, CreateLog("a"), b"1", at=1_100) == first
    assert isinstance(told(state, CreateLog("c"), b"3", at=1_101), Description)
    assert isinstance(told(state, CreateLog("a"), b"1", at=1_101), Refused), "no longer remembered"


def test_requests_are_forgotten_after_their_time_even_if_there_is_room() -> None:
    state = State("c", Limits(request_memory_ms=500, request_memory_min_ms=100))
    first = told(state, CreateLog("a"), b"1", at=1_000)
    assert told(state, CreateLog("a"), b"1", at=1_500) == first
    assert isinstance(told(state, CreateLog("a"), b"1", at=1_501), Refused)


def test_so_many_tombstones_answer_and_of_more_the_oldest_do_not() -> None:
    state = State("c", Limits(tombstones_max=2))
    told(state, CreateLog("a"))
    for id in (2, 3):
        told(state, fork(1))
        told(state, Squash(LogId(id)))
    told(state, fork(1), b"at the limit")
    assert refusals(state, 2, 3) == ["squashed", "squashed"]
    told(state, Squash(LogId(4)))
    told(state, fork(1), b"one past it")
    assert refusals(state, 2, 3, 4) == ["unknown-log", "squashed", "squashed"]
    assert broken(state.replica) == []


def refusals(state: State, *logs: int) -> list[str]:
    outcomes = [told(state, fork(log)) for log in logs]
    return [outcome.code for outcome in outcomes if isinstance(outcome, Refused)]


def test_a_tombstone_answers_for_its_time_and_not_longer() -> None:
    limits = Limits(tombstone_ms=100)
    state = State("c", limits)
    told(state, CreateLog("a"), at=1_000)
    told(state, fork(1), at=1_000)
    told(state, Squash(LogId(2)), at=1_000)
    codes: list[str] = []
    for at in (1_100, 1_101):
        outcome = told(state, Squash(LogId(2)), b"%d" % at, at=at)
        assert isinstance(outcome, Refused)
        codes.append(outcome.code)
    assert codes == ["squashed", "unknown-log"]


@pytest.mark.parametrize("promotions", [2, 3])
def test_a_receipt_outlives_as_many_promotions_as_are_remembered(promotions: int) -> None:
    twins = Twins(Limits(promotions_remembered_max=2))
    root = twins.root("a")
    twins.cfork(root, "f", promotable=True)
    outcome = twins.append(root, 1)
    assert isinstance(outcome, Committed)
    receipt = outcome.rows[0]
    assert isinstance(receipt, Receipt)
    for _ in range(promotions):
        twins.apply(Promote(twins.cfork(root, promotable=True)))
    answer = twins.state.answer(ResolveReceipt(receipt))
    if promotions == 2:
        assert answer == Settled("a", 0)
    else:
        assert isinstance(answer, Refused)
        assert answer.code == "receipt-expired"


@pytest.mark.parametrize("segments_max", [1, 2, 7, 8, 100])
def test_a_lineage_caches_no_more_segments_than_it_may(segments_max: int) -> None:
    twins = Twins(Limits(lineage_segments_max=segments_max))
    root = twins.root("a")
    below = twins.cfork(root)
    for _ in range(4):
        twins.append(root, 2)
        twins.append(below, 1)
        twins.compare()
    lineage = twins.state.replica.forest.logs[below].lineage
    assert isinstance(lineage, Lineage)
    assert len(lineage.starts) == min(segments_max, 8)


@pytest.mark.parametrize(
    ("forks", "noted", "asked", "listed"),
    [(9, 0, 3, 3), (9, 0, 0, 1), (10_001, 0, 20_000, 10_000), (800, 1_000, 1_000, 509)],
)
def test_a_listing_is_bounded_and_says_that_there_is_more(
    forks: int, noted: int, asked: int, listed: int
) -> None:
    state = State("c", Limits())
    told(state, CreateLog("a"))
    for _ in range(forks):
        told(state, fork(1, by="\U0001f409" * noted, why="\U0001f409" * noted))
    listing = state.answer(ListLogs(count_max=asked))
    assert isinstance(listing, Listing)
    assert len(listing.logs) == listed
    assert listing.more
    rest = state.answer(ListLogs(after=listing.logs[-1].name, count_max=asked))
    assert isinstance(rest, Listing)
    assert rest.logs[0].name > listing.logs[-1].name


def test_a_listing_of_all_says_that_there_is_no_more() -> None:
    state = State("c", Limits())
    told(state, CreateLog("a"))
    told(state, fork(1))
    listing = state.answer(ListLogs(count_max=2))
    assert isinstance(listing, Listing)
    assert (len(listing.logs), listing.more) == (2, False)
