"""Any sequence of calls, as Hypothesis finds and shrinks it, against copied lists (spec 12.2)."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from anabranch.core.bolt.protocol.commands import (
    Batch,
    CommitCursor,
    CreateLog,
    DeleteLog,
    Expire,
    ForkLog,
    Promote,
    PromoteIf,
    Squash,
    Trim,
)
from anabranch.core.limits import Limits
from anabranch.core.types import Kind, LogId, OnParentDelete, OnPromote
from anabranch_sim.bolt.twin_questions import compare_two
from anabranch_sim.bolt.twins import Twins

PICK = st.integers(0, 10_000)
BATCHES = st.lists(
    st.builds(
        Batch,
        length=st.integers(10, 40),
        count=st.integers(1, 4),
        producer=st.sampled_from((-1, -1, 0, 1)),
        sequence=st.integers(0, 6),
    ),
    min_size=1,
    max_size=3,
)


class Calls(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.twins = Twins(Limits(lineage_segments_max=4))
        self.twins.root("a")

    def log(self, pick: int) -> LogId:
        ids = [*self.twins.naive.logs]
        return ids[pick % len(ids)]

    def position(self, log: LogId, pick: int) -> int:
        return pick % (len(self.twins.naive.logs[log].records) + 2) - 1

    @rule()
    def create(self) -> None:
        self.twins.apply(CreateLog(f"log{self.twins.naive.next_id}"))

    @precondition(lambda self: self.twins.naive.logs)
    @rule(pick=PICK, other=PICK, batches=BATCHES, more=st.lists(BATCHES, max_size=1))
    def commit(self, pick: int, other: int, batches: list[Batch], more: list[list[Batch]]) -> None:
        rows = [(self.log(pick), batches), *((self.log(other), each) for each in more)]
        self.twins.commit(rows)

    @precondition(lambda self: self.twins.naive.logs)
    @rule(pick=PICK, promotable=st.booleans(), ttl_ms=st.sampled_from((None, None, 9)))
    def cfork(self, pick: int, promotable: bool, ttl_ms: int | None) -> None:
        command = ForkLog(self.log(pick), Kind.CONTINUOUS, promotable=promotable, ttl_ms=ttl_ms)
        self.twins.apply(command)

    @precondition(lambda self: self.twins.naive.logs)
    @rule(
        pick=PICK,
        past=st.none() | PICK,
        at=st.none() | PICK,
        policy=st.sampled_from(OnParentDelete),
    )
    def sfork(self, pick: int, past: int | None, at: int | None, policy: OnParentDelete) -> None:
        log = self.log(pick)
        if self.twins.spans:
            at = None  # where extents were joined, times are compared by themselves
        self.twins.apply(
            ForkLog(
                log,
                Kind.SEVERED,
                past=None if past is None else self.position(log, past),
                at=None if at is None else 1_000 + at % (self.twins.now - 990),
                on_parent_delete=policy,
            )
        )

    @precondition(lambda self: any(log.promotable for log in self.twins.naive.logs.values()))
    @rule(pick=PICK)
    def promote(self, pick: int) -> None:
        promotable = [log.id for log in self.twins.naive.logs.values() if log.promotable]
        self.twins.apply(Promote(promotable[pick % len(promotable)]))

    @precondition(lambda self: any(log.promotable for log in self.twins.naive.logs.values()))
    @rule(pick=PICK, more=st.integers(-1, 1))
    def promote_if(self, pick: int, more: int) -> None:
        promotable = [log for log in self.twins.naive.logs.values() if log.promotable]
        fork = promotable[pick % len(promotable)]
        self.twins.apply(PromoteIf(fork.id, fork.own_records + more))

    @rule(id=st.integers(1, 20))
    def promote_any(self, id: int) -> None:
        self.twins.apply(Promote(LogId(id)))

    @precondition(lambda self: self.twins.naive.logs)
    @rule(pick=PICK)
    def squash(self, pick: int) -> None:
        self.twins.apply(Squash(self.log(pick)))

    @precondition(lambda self: self.twins.naive.logs)
    @rule(pick=PICK, force=st.booleans())
    def delete(self, pick: int, force: bool) -> None:
        self.twins.apply(DeleteLog(self.log(pick), force))

    @precondition(lambda self: self.twins.naive.logs)
    @rule(pick=PICK, before=PICK)
    def trim(self, pick: int, before: int) -> None:
        log = self.log(pick)
        self.twins.apply(Trim(log, self.position(log, before)))

    @precondition(lambda self: self.twins.naive.logs)
    @rule(pick=PICK, position=PICK, choice=st.sampled_from([None, *OnPromote]))
    def cursor(self, pick: int, position: int, choice: OnPromote | None) -> None:
        log = self.log(pick)
        self.twins.apply(CommitCursor(log, "c", self.position(log, position), choice))

    @precondition(lambda self: self.twins.naive.logs)
    @rule(pick=PICK)
    def expire(self, pick: int) -> None:
        self.twins.apply(Expire([self.log(pick)]))

    @precondition(lambda self: self.twins.naive.logs)
    @rule(pick=PICK, since=PICK, joined=st.lists(st.integers(1, 3), min_size=1, max_size=3))
    def compact(self, pick: int, since: int, joined: list[int]) -> None:
        log = self.log(pick)
        index = self.twins.state.replica.forest.logs[log].index
        since = since % (len(index) + 1)
        ends = [since + sum(joined[: turn + 1]) for turn in range(len(joined))]
        if ends[-1] <= len(index) and all(
            index.inherited_before(end - together) == index.inherited_before(end - 1)
            for end, together in zip(ends, joined, strict=True)
        ):
            self.twins.swap(self.twins.copied(log, since, joined))

    @precondition(lambda self: self.twins.naive.logs)
    @rule(pick=PICK, other=PICK)
    def diff(self, pick: int, other: int) -> None:
        compare_two(self.twins, self.log(pick), self.log(other))

    @rule()
    def restart(self) -> None:
        self.twins.restart()

    @invariant()
    def agree(self) -> None:
        self.twins.compare()

    def teardown(self) -> None:
        self.twins.replay()


TestCalls = Calls.TestCase
TestCalls.settings = settings(max_examples=40, stateful_step_count=30)
