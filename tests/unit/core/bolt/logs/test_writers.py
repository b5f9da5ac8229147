"""Each part of a writer's version is appended once, whatever comes between (decision 76)."""

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
    Done,
    Entry,
    ForkLog,
    Promote,
    Promotion,
    RaiseFormat,
    Receipt,
    RegisterBroker,
    Row,
    Sequenced,
    SetAppends,
    Squash,
)
from anabranch.core.bolt.protocol.engine_settings import EngineSettings
from anabranch.core.bolt.protocol.marks import (
    MARKS_FORMAT,
    AlreadyAppended,
    CompleteVersion,
    ReadWriters,
    ReleaseWriter,
    WriterMark,
    Writers,
)
from anabranch.core.bolt.protocol.queries import ListBrokers, Pool, Resolve, Resolved
from anabranch.core.bolt.state import snapshot
from anabranch.core.bolt.state.invariants import broken
from anabranch.core.bolt.state.state import State
from anabranch.core.errors import AnabranchError
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.records.objects import object_id
from anabranch.core.types import NEVER, Kind, LogId

DAY_MS = 86_400_000
LIMITS = Limits(writers_per_log_max=2, writer_parts_max=4, writer_batches_max=6)
W = "query-7"
FORK, SEVERED = "root--f", "root--s"
Key = tuple[int, int, int]
"""Version, part, batch."""


class Stage:
    def __init__(self, limits: Limits | None = None, knows: int = FORMAT) -> None:
        self.limits = limits or Limits()
        self.state = State("c", self.limits)
        self.now, self.objects = 1_000, 0
        self.sent: dict[int, tuple[Key, int]] = {}
        """By object: which batch it was, and its digest."""
        self.do(RaiseFormat(knows))
        self.do(RegisterBroker("b"))
        self.root: LogId = self.do(CreateLog("root")).id

    def do(self, command: Any) -> Any:
        return self.state.apply(Entry(self.now, b"", command))

    def id(self, name: str) -> LogId:
        return self.state.replica.forest.find(name).id

    def there(self, name: str) -> bool:
        try:
            return bool(self.id(name))
        except AnabranchError:
            return False

    def append(
        self,
        log: str | LogId,
        key: Key,
        digest: int = 1 << 24,
        *,
        writer: str = W,
        count: int = 1,
    ) -> int | Receipt | AlreadyAppended | Refused:
        self.objects += 1
        mark = WriterMark(writer, *key)
        object = object_id(1, self.objects)
        self.sent[object] = (key, digest)
        batch = Batch(10, count, mark.sender, 0, mark.batch, digest, mark)
        id = self.id(log) if isinstance(log, str) else log
        done = self.do(CommitObject("b", object, [Row(id, 0, [batch])], self.objects))
        assert isinstance(done, Committed)
        result = done.rows[0]
        return result.batches[0] if isinstance(result, Sequenced) else result

    def complete(self, log: str, version: int, parts: dict[int, int], writer: str = W) -> Any:
        return self.do(CompleteVersion(self.id(log), writer, version, [*parts.items()]))

    def fork(
        self, name: str = "f", kind: Kind = Kind.CONTINUOUS, *, promotable: bool = True
    ) -> Any:
        return self.do(ForkLog(self.root, kind, name, promotable=promotable))

    def reopen(self) -> None:
        image = snapshot.save(self.state.replica)
        self.state.replica = snapshot.load(image, self.limits)
        assert snapshot.save(self.state.replica) == image

    def held(self, log: str) -> list[tuple[Key, int]]:
        """Every batch that can be read in a log, in order, undecided ones included."""
        answer = self.state.answer(Resolve(self.id(log), 0, NEVER, NEVER, speculative=True))
        assert isinstance(answer, Resolved), answer
        return [self.sent[piece.object] for piece in answer.slices for _ in range(piece.count)]

    def known(self, log: str) -> dict[str, tuple[int, dict[int, dict[int, int]]]]:
        """Of each writer its complete version, and the parts of its open ones."""
        answer = self.state.answer(ReadWriters(self.id(log)))
        assert isinstance(answer, Writers), answer
        return {
            each.writer: (each.complete, {begun.version: dict(begun.parts) for begun in each.open})
            for each in answer.writers
        }


def code(result: object) -> str:
    assert isinstance(result, Refused), result
    return result.code


def said(result: object) -> str:
    assert isinstance(result, Refused), result
    return result.message


KEYS = st.tuples(st.integers(0, 1), st.integers(0, 1), st.sampled_from([0, 0, 1]))
NAMES = st.sampled_from(["root", FORK, "root", FORK, SEVERED])
STEPS = st.one_of(
    st.tuples(st.just("append"), NAMES, KEYS, st.sampled_from([1 << 24, 1 << 24, 2 << 24])),
    st.tuples(st.just("complete"), NAMES, st.integers(0, 1)),
    st.tuples(st.just("fork"), st.sampled_from([False, False, True])),
    st.tuples(st.sampled_from(["promote", "promote", "squash", "reopen", "wait", "plain"])),
)


@given(st.lists(STEPS, min_size=12, max_size=50))
def test_no_log_gets_a_batch_twice_and_every_answer_names_the_very_batch(
    steps: list[tuple[Any, ...]],
) -> None:
    stage = Stage()
    stage.fork()
    for step in steps:
        match step:
            case ("append", name, key, digest) if stage.there(name):
                check_append(stage, name, key, digest)
            case ("complete", name, version) if stage.there(name):
                check_complete(stage, name, version)
            case ("fork", severed):
                kind = Kind.SEVERED if severed else Kind.CONTINUOUS
                stage.fork("s" if severed else "f", kind, promotable=not severed)
            case ("promote",) if stage.there(FORK):
                check_promote(stage)
            case ("squash",) if stage.there(FORK):
                stage.do(Squash(stage.id(FORK)))
            case ("plain",):
                stage.objects += 1
                object = object_id(1, stage.objects)
                stage.sent[object] = (-stage.objects, 0, 0), 0
                row = Row(stage.root, 0, [Batch(10, 1)])
                stage.do(CommitObject("b", object, [row], stage.objects))
            case ("reopen",):
                stage.reopen()
            case _:
                stage.now += DAY_MS
        assert broken(stage.state.replica) == []
        for name in ("root", SEVERED):
            # Who writes one part to a parent and to its fork has it twice in the fork; but no
            # promotion takes it from there to the parent.
            own = stage.held(name) if stage.there(name) else []
            own = own[stage.state.replica.forest.find(name).fork_point :] if own else []
            keys = [key for key, _ in own]
            assert len(keys) == len(set(keys)), name


def check_append(stage: Stage, name: str, key: Key, digest: int) -> None:
    before = stage.held(name)
    complete, begun = stage.known(name).get(W, (-1, {}))
    result = stage.append(name, key, digest)
    after = stage.held(name)
    match result:
        case int() | Receipt():
            assert sorted(after) == sorted([*before, (key, digest)])
            assert key not in [each for each, _ in before]
            assert key[0] > complete
            assert begun.get(key[0], {}).get(key[1], 0) == key[2], "in the order of their numbers"
        case AlreadyAppended(position, receipt, top):
            assert after == before
            assert key in [each for each, _ in before] or key[0] < top
            where = receipt.provisional if receipt is not None else position
            if where is not None:
                assert after[where] == (key, digest), "it names the very batch"
        case Refused(refusal):
            assert after == before
            assert refusal in {"part-gap", "part-differs", "writer-conflict", "append-blocked"}


def check_complete(stage: Stage, name: str, version: int) -> None:
    """What is in the log by now is named: all of it, or all but one batch."""
    own = {key for key, _ in stage.held(name) if key[0] == version}
    held = {part: sum(key[1] == part for key in own) for part in {key[1] for key in own}}
    short = {part: batches + 1 for part, batches in held.items()}
    complete = stage.known(name).get(W, (-1, {}))[0]
    if short and version > complete:
        assert code(stage.complete(name, version, short)) == "writer-conflict"
    done = stage.complete(name, version, held)
    if isinstance(done, Refused):
        assert done.code == "writer-conflict"
    else:
        assert stage.complete(name, version, held) == Done(), "asked again, it is done"


def check_promote(stage: Stage) -> None:
    both = stage.held("root") + stage.held(FORK)
    fork = stage.id(FORK)
    done = stage.do(Promote(fork))
    if isinstance(done, Refused):
        assert done.code == "writer-conflict"
        return
    assert isinstance(done, Promotion)
    for key, digest in {each for each in stage.held("root") if each in both and each[0][0] >= 0}:
        for log in ("root", fork):
            again = stage.append(log, key, digest)
            if isinstance(again, Refused):
                assert log == "root" or again.code == "promoted"
            else:
                assert isinstance(again, AlreadyAppended), "both names answer for both logs"


def test_a_part_goes_on_where_a_killed_attempt_stopped_also_after_a_day_and_a_restart() -> None:
    stage = Stage()
    assert [stage.append("root", (0, 3, batch)) for batch in (0, 1)] == [0, 1]
    stage.now += 30 * DAY_MS
    stage.reopen()
    assert [stage.append("root", (0, 3, batch)) for batch in (0, 1, 2)] == [
        AlreadyAppended(0, None, -1),
        AlreadyAppended(1, None, -1),
        2,
    ]
    assert code(stage.append("root", (0, 3, 4))) == "part-gap"
    assert code(stage.append("root", (0, 3, 1), 2 << 24)) == "part-differs"
    assert len(stage.held("root")) == 3


def test_times_that_nobody_gave_make_no_difference_to_what_a_part_holds() -> None:
    stage = Stage()
    stage.append("root", (0, 0, 0), (5 << 24) + 0)
    assert isinstance(stage.append("root", (0, 0, 0), (5 << 24) + 77), AlreadyAppended)


def test_a_complete_version_takes_nothing_more_and_answers_its_first_positions() -> None:
    stage = Stage()
    stage.append("root", (4, 0, 0))
    stage.append("root", (4, 0, 1))
    stage.append("root", (4, 2, 0))
    assert code(stage.complete("root", 4, {0: 2})) == "writer-conflict"
    assert stage.complete("root", 4, {0: 2, 1: 0, 2: 1}) == Done()
    stage.reopen()
    assert stage.append("root", (4, 2, 0)) == AlreadyAppended(2, None, 4)
    assert stage.append("root", (4, 0, 1)) == AlreadyAppended(None, None, 4)
    assert code(stage.append("root", (4, 0, 0), 9 << 24)) == "part-differs"
    assert code(stage.append("root", (4, 0, 2))) == "part-differs", "more than it had"
    assert code(stage.append("root", (4, 7, 0))) == "part-differs", "another part than it had"
    assert stage.append("root", (3, 9, 9)) == AlreadyAppended(None, None, 4), "a lower version"
    assert code(stage.complete("root", 4, {0: 1})) == "writer-conflict"
    assert stage.complete("root", 3, {5: 5}) == Done()
    assert len(stage.held("root")) == 3


def test_a_version_is_complete_only_after_those_below_it() -> None:
    stage = Stage()
    stage.append("root", (1, 0, 0))
    stage.append("root", (2, 0, 0))
    refused = stage.complete("root", 2, {0: 1})
    assert code(refused) == "writer-conflict"
    assert "version 1 is open" in refused.message
    assert stage.complete("root", 1, {0: 1}) == stage.complete("root", 2, {0: 1}) == Done()


def test_a_position_is_told_where_a_promotion_moved_it() -> None:
    stage = Stage()
    stage.fork()
    stage.append(FORK, (0, 0, 0), count=5, writer="other")
    assert isinstance(stage.append("root", (0, 0, 0)), Receipt)
    assert stage.append("root", (0, 0, 0)) == AlreadyAppended(None, Receipt(stage.root, 0, 0), -1)
    fork = stage.id(FORK)
    stage.do(Promote(fork))
    assert stage.append("root", (0, 0, 0)) == AlreadyAppended(5, None, -1)
    assert stage.append("root", (0, 0, 0), writer="other") == AlreadyAppended(0, None, -1)
    assert stage.append(fork, (0, 0, 0), writer="other") == AlreadyAppended(0, None, -1)
    assert code(stage.append(fork, (0, 0, 1), writer="other")) == "promoted"
    stage.reopen()
    assert stage.append("root", (0, 0, 1), writer="other") == 6, "the parent takes the rest"


def test_a_promotion_into_a_fork_moves_what_the_fork_then_brings_its_parent() -> None:
    stage = Stage()
    fork = stage.fork().id
    above = stage.do(ForkLog(fork, Kind.CONTINUOUS, "g", promotable=True)).id
    stage.append(above, (0, 0, 0), count=5, writer="other")
    stage.append(fork, (0, 0, 0))
    stage.append(fork, (0, 1, 0))
    assert stage.complete(FORK, 0, {0: 1, 1: 1}) == Done()
    stage.append(fork, (1, 0, 0))
    for log in (above, fork):
        assert isinstance(stage.do(Promote(log)), Promotion)
    answers = [stage.append("root", key) for key in ((0, 0, 0), (0, 1, 0), (1, 0, 0))]
    assert answers == [AlreadyAppended(position, None, 0) for position in (5, 6, 7)]


def test_a_version_in_forks_of_its_own_is_in_the_parent_once_however_long_after() -> None:
    """A sink that writes each version into a promotable fork, and forgets that it promoted one."""
    stage = Stage()
    for _ in range(2):
        stage.fork()
        stage.append(FORK, (5, 0, 0))
        assert stage.complete(FORK, 5, {0: 1}) == Done()
        assert isinstance(stage.do(Promote(stage.id(FORK))), Promotion)
        stage.now += 365 * DAY_MS
    assert len(stage.held("root")) == 1


def test_a_continuous_fork_knows_what_it_inherits_and_a_severed_one_begins_anew() -> None:
    stage = Stage()
    stage.append("root", (0, 0, 0))
    stage.fork(promotable=False)
    stage.fork("s", Kind.SEVERED, promotable=False)
    stage.append("root", (0, 1, 0))
    assert stage.append(FORK, (0, 0, 0)) == AlreadyAppended(None, None, -1)
    assert stage.append(FORK, (0, 1, 0)) == AlreadyAppended(None, None, -1), "appended since"
    refused = stage.append(FORK, (0, 0, 1))
    assert code(refused) == "writer-conflict"
    assert "was begun in root" in said(refused)
    assert isinstance(stage.append(FORK, (0, 2, 0)), int)
    assert stage.complete(FORK, 0, {0: 1, 1: 1, 2: 1}) == Done()
    assert stage.known("root")[W][0] == -1, "a parent knows nothing of its forks"
    assert isinstance(stage.append(SEVERED, (0, 0, 0)), int)
    stage.do(Squash(stage.id(FORK)))
    assert isinstance(stage.append("root", (0, 2, 0)), int), "what went with a fork isn't there"


def test_a_promotion_that_would_bring_a_part_twice_is_refused_until_a_writer_is_released() -> None:
    stage = Stage()
    stage.fork()
    for log in (FORK, "root"):
        stage.append(log, (0, 0, 0))
    refused = stage.do(Promote(stage.id(FORK)))
    assert code(refused) == "writer-conflict"
    assert "release the writer" in refused.message
    stage.do(ReleaseWriter(stage.id(FORK), W))
    assert isinstance(stage.do(Promote(stage.id(FORK))), Promotion)


def test_a_released_writer_is_new_and_leaves_room() -> None:
    stage = Stage(LIMITS)
    for writer in ("a", "b"):
        stage.append("root", (0, 0, 0), writer=writer)
    assert code(stage.append("root", (0, 0, 0), writer="c")) == "too-many"
    assert code(stage.complete("root", 0, {}, writer="c")) == "too-many"
    stage.do(ReleaseWriter(stage.root, "a"))
    assert stage.append("root", (0, 0, 0), writer="c") == 2
    stage.do(ReleaseWriter(stage.root, "b"))
    assert stage.append("root", (0, 0, 0), writer="b") == 3, "the log forgot it"


def test_parts_and_batches_are_bounded_and_a_complete_version_makes_room() -> None:
    stage = Stage(LIMITS)
    for part in range(4):
        stage.append("root", (0, part, 0))
    refused = stage.append("root", (0, 4, 0))
    assert "writer_parts_max" in said(refused)
    stage.append("root", (0, 0, 1))
    stage.append("root", (0, 0, 2))
    refused = stage.append("root", (0, 0, 3))
    assert "writer_batches_max" in said(refused)
    assert stage.complete("root", 0, {0: 3, 1: 1, 2: 1, 3: 1}) == Done()
    assert code(stage.append("root", (1, 0, 0))) == "too-many", "the last version's parts count"
    assert stage.complete("root", 1, {}) == Done()
    assert stage.append("root", (2, 0, 0)) == 6


def test_a_promotion_brings_no_more_than_the_parent_has_room_for() -> None:
    stage = Stage(LIMITS)
    stage.fork()
    for log, writer in (("root", "a"), ("root", "b"), (FORK, "c")):
        stage.append(log, (0, 0, 0), writer=writer)
    refused = stage.do(Promote(stage.id(FORK)))
    assert code(refused) == "too-many"
    assert len(stage.held("root")) == 2, "it changed nothing"


def test_positions_of_more_promotions_ago_than_are_remembered_are_left_out() -> None:
    stage = Stage(replace(Limits(), promotions_remembered_max=1))
    stage.append("root", (0, 0, 0))
    for _ in range(3):
        stage.fork()
        stage.do(Promote(stage.id(FORK)))
    assert stage.append("root", (0, 0, 0)) == AlreadyAppended(None, None, -1)


def test_logs_with_a_front_and_of_other_engines_refuse_marks_by_name() -> None:
    stage = Stage()
    stage.append("root", (0, 0, 0))
    stage.do(SetAppends(stage.root, EngineSettings()))
    refused = stage.append("root", (0, 1, 0))
    assert code(refused) == "no-writer-marks"
    assert "lazy front" in said(refused)
    assert stage.append("root", (0, 0, 0)) == AlreadyAppended(0, None, -1), "it was there before"
    stage.do(CreateLog("other", engine="belfast", settings=EngineSettings()))
    refused = stage.append("other", (0, 0, 0))
    assert "belfast engine" in said(refused)
    assert code(stage.complete("other", 0, {})) == "wrong-engine"


def test_members_of_an_earlier_format_have_no_marks_and_say_so() -> None:
    stage = Stage(knows=MARKS_FORMAT - 1)
    assert code(stage.complete("root", 0, {})) == "unavailable"
    assert code(stage.do(ReleaseWriter(stage.root, W))) == "unavailable"
    pool = stage.state.answer(ListBrokers())
    assert isinstance(pool, Pool)
    assert pool.format == MARKS_FORMAT - 1, "by which brokers know"


@pytest.mark.parametrize("writer", ["", "x" * 201, "a\nb"])
def test_names_are_bounded(writer: str) -> None:
    stage = Stage()
    assert code(stage.complete("root", 0, {}, writer=writer)) == "bad-request"
    assert code(stage.do(ReleaseWriter(stage.root, writer))) == "bad-request"


def test_marks_out_of_step_are_an_invariant_broken() -> None:
    stage = Stage()
    stage.append("root", (3, 0, 0))
    marks = stage.state.replica.forest.logs[stage.root].marks
    assert marks is not None
    marks.batches += 1
    marks.writers[W].complete = 3
    marks.writers[W].open[3][0].positions[0] = 9
    found = " ".join(each.what for each in broken(stage.state.replica) if each.rule == "writers")
    assert "count 1 parts and 2 batches" in found
    assert "complete version open" in found
    assert "beyond the log" in found
