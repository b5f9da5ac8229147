"""The leader of one epoch: cuts its ring into batches, has the log commit them in their order, and
has them dropped from the rings (decision 62).

Rules it holds:
1. Nothing is cut before the log has opened the epoch, and what the log holds by then is dropped.
2. Batches are cut in the ring's order and numbered without a gap; one that is sent again is the
   same.
3. `order` is called for a batch when the log has committed it, and all before it.
4. The log is told that a record is released only if all replicas have dropped it.
"""

from collections import deque
from dataclasses import dataclass
from functools import partial

from anabranch.core.bolt.front.config import CommitBounds
from anabranch.core.bolt.front.counters import FrontCounters
from anabranch.core.bolt.front.questions import Answer, Questions
from anabranch.core.bolt.protocol.fronts import (
    AppendFront,
    EndFront,
    FrontConfiguration,
    FrontEpoch,
    FrontMark,
    FrontOpened,
    OpenFront,
)
from anabranch.core.errors import BadRequest, FrontDiffers, SequenceGap, StaleView
from anabranch.core.errors.refused import Refused
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.state.replica_part import SequencingPart
from anabranch.core.sequencing.state.ring import Entry
from anabranch.core.types import LogId, Position


@dataclass(frozen=True, slots=True)
class CutBatch:
    """Entries of the ring that the log commits together."""

    number: int
    first: Position
    entries: list[Entry]
    size: int

    @property
    def end(self) -> Position:
        return self.first + sum(entry.count for entry in self.entries)


class Committing:
    """While the log is away nothing is ordered. Appends go on until the ring is full."""

    def __init__(
        self,
        log: LogId,
        epoch: FrontEpoch,
        replica: SequencingPart,
        questions: Questions,
        *,
        bounds: CommitBounds,
        counters: FrontCounters,
    ) -> None:
        self.epoch = epoch
        self.opened = False
        self._ends = False
        """It has said that the front ends."""
        self.over = False
        """A later epoch was opened: nothing that is sent would be taken."""
        self.ended: Refused | None = None
        """What everything is answered from now on: the log is gone, or isn't this front's."""
        self.batches: deque[CutBatch] = deque()
        """Those that the log hasn't committed, as far as is known here."""
        self._log = log
        self._replica = replica
        self._questions = questions
        self._bounds = bounds
        self._counters = counters
        self._number = 0
        self._end: Position = 0
        """Of the last batch that was cut."""
        self._size = 0
        """Bytes of the batches under way."""
        self._known: deque[tuple[AppendId, Position]] = deque()
        """Committed in an earlier epoch, and not dropped here yet; in the ring's order."""
        self._gathered: list[Entry] = []
        self._gathered_bytes = 0
        questions.ask(OpenFront(log, epoch), self._on_opened)

    @property
    def idle(self) -> bool:
        return self.opened and not self._known and not self._gathered and not self.batches

    def end(self) -> None:
        """Nothing enters the ring any more: when it is empty, the front ends."""
        if self._ends or not self.idle or self.over or self.ended:
            return
        if len(self._replica.ring) or self._replica.ordered < self._end:
            return
        self._ends = True
        message = EndFront(self._log, self.epoch, self._end)
        self._questions.ask(message, self._on_end)

    def _on_end(self, answer: Answer) -> None:
        if isinstance(answer, FrontConfiguration):
            self.ended = Refused.of(BadRequest("this", "the log's appends are direct by now"))
        else:
            self._refused(answer)

    def settle(self) -> None:
        """The end of a step: what came in it is cut and sent."""
        if not self.opened or self.over or self.ended is not None:
            return
        self._drop_known()
        while not self._known and (batch := self._next()) is not None:
            self.batches.append(batch)
            self._size += batch.size
            self._counters.batches += 1
            self._counters.appends += len(batch.entries)
            self._send(batch)

    def _on_opened(self, answer: Answer) -> None:
        if not isinstance(answer, FrontOpened):
            self._refused(answer)
            return
        ordered = self._replica.ordered
        known = [(id, offset) for id, offset in answer.ids if offset >= ordered]
        # What isn't dropped here was never released, so that the log still has its ids.
        if ordered != (known[0][1] if known else answer.records):
            self.ended = Refused.of(FrontDiffers(self._log, answer.records, ordered))
            return
        self._known.extend(known)
        self._end = answer.records
        self.opened = True

    def _drop_known(self) -> None:
        """A leader that was restarted had these committed before, and finds them first in its
        ring: it takes what is in its journal, in that order.
        """
        while self._known:
            entries = self._replica.take(bytes_max=1 << 62, count_max=len(self._known))
            if not entries:
                return  # other members have to catch up first
            known = [self._known.popleft() for _ in entries]
            assert [entry.id for entry in entries] == [id for id, _ in known], "one order"
            self._counters.found += len(entries)
            self._order(entries, known[0][1])

    def _order(self, entries: list[Entry], first: Position) -> None:
        assert entries, "a batch has appends"
        ids: list[AppendId] = []
        positions: list[Position] = []
        for entry in entries:
            ids.append(entry.id)
            positions.append(first)
            first += entry.count
        self._replica.order(ids, positions, first)

    def _next(self) -> CutBatch | None:
        """None if there is nothing to cut, or it should wait for company."""
        bounds = self._bounds
        if len(self.batches) >= bounds.batches_max or self._size >= bounds.bytes_max:
            return None
        if not self._full:
            entries = self._replica.take(
                bytes_max=bounds.batch_bytes - self._gathered_bytes,
                count_max=bounds.batch_appends - len(self._gathered),
            )
            self._gathered += entries
            self._gathered_bytes += sum(entry.size for entry in entries)
        if not self._gathered or not (self._full or len(self.batches) < bounds.eager_batches):
            return None
        assert self._end >= self._replica.ordered, "what is cut follows what is dropped"
        self._number += 1
        batch = CutBatch(self._number, self._end, self._gathered, self._gathered_bytes)
        self._end = batch.end
        self._gathered, self._gathered_bytes = [], 0
        return batch

    @property
    def _full(self) -> bool:
        bounds = self._bounds
        return (
            self._gathered_bytes >= bounds.batch_bytes
            or len(self._gathered) >= bounds.batch_appends
        )

    def _send(self, batch: CutBatch, *, later: bool = False) -> None:
        assert 0 < batch.number <= self._number, "only what was cut is sent"
        mark = FrontMark(self.epoch, batch.number, self._replica.stable)
        batches = [entry.batch for entry in batch.entries]
        message = AppendFront(log=self._log, mark=mark, batches=batches)
        ask = self._questions.ask_later if later else self._questions.ask
        ask(message, partial(self._on_answer, batch))

    def _on_answer(self, batch: CutBatch, answer: Answer) -> None:
        if isinstance(answer, Refused) and answer.code == SequenceGap.code:
            expected = answer.facts["expected"]
            assert isinstance(expected, int)
            if expected <= batch.number:
                # The one before it is on its way again.
                self._counters.gaps += 1
                self._send(batch, later=True)
            else:
                self._committed(batch.number)
        elif isinstance(answer, Refused):
            self._refused(answer)
        else:
            self._committed(batch.number)

    def _committed(self, number: int) -> None:
        """And with it all before it."""
        while self.batches and self.batches[0].number <= number:
            batch = self.batches.popleft()
            self._size -= batch.size
            assert self._size >= 0
            self._counters.committed += len(batch.entries)
            self._counters.committed_bytes += batch.size
            self._order(batch.entries, batch.first)

    def _refused(self, answer: Answer) -> None:
        assert isinstance(answer, Refused), "an opening, a commit or a refusal"
        if answer.code == StaleView.code:
            self.over = True
            self._counters.fenced += 1
        else:
            self.ended = answer
