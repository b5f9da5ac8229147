"""What an application has computed ahead of its confirmation, and how to undo it (Belfast, 5).

Its figure 6 as a library: the application says how to do, how to undo, and what to do once it is
certain; when to do which is decided here.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar, assert_never

from anabranch.client.session.records import Confirm, Deliver, Event, Fail, LogRecord
from anabranch.core.errors import BadRequest, Overloaded
from anabranch.core.types import Position

UNCONFIRMED_MAX = 65_536
"""Records done and not confirmed, each with what undoes it."""

BATCH_MAX = 1_024

D = TypeVar("D")
"""What doing a record leaves behind: what undoing it takes, and what is told once it is sure."""


class Source(Protocol):
    """A subscription, as `Log.subscribe` gives it."""

    async def take(self, *, records_max: int) -> list[Event]: ...


class BatchSpeculator(Generic[D]):
    """Computes over whatever has come, batch by batch.

    A batch is undone as a whole: what is right of one that failed in part is done again. It is
    told of once all of it is confirmed.
    """

    def __init__(
        self,
        do: Callable[[Sequence[LogRecord]], D],
        undo: Callable[[Sequence[LogRecord], D], None],
        on_confirm: Callable[[Sequence[LogRecord], D], None] | None = None,
        *,
        batch_max: int = BATCH_MAX,
        unconfirmed_max: int = UNCONFIRMED_MAX,
    ) -> None:
        """`undo` is given what `do` returned, of the last batch first; `on_confirm` as well, in
        order, once for each record that is confirmed.
        """
        if not 1 <= batch_max <= unconfirmed_max:
            raise BadRequest("batch_max", "it must be from 1 to unconfirmed_max")
        self.rollbacks = 0
        """How many times something had to be undone."""
        self.confirmed: Position = 0
        """What was told of lies below: from here on another run would go on."""
        self._do, self._undo, self._on_confirm = do, undo, on_confirm
        self._batch_max, self._unconfirmed_max = batch_max, unconfirmed_max
        self._done: deque[tuple[Sequence[LogRecord], D]] = deque()
        self._unconfirmed = 0
        self._sound = True

    @property
    def unconfirmed(self) -> int:
        """Records that are done and may still have to be undone."""
        return self._unconfirmed

    def take(self, *events: Event) -> None:
        """The next events of the subscription; what `do`, `undo` or `on_confirm` raises ends it."""
        if not self._sound:
            reason = "what it called raised an error: begin another where this one's `confirmed` is"
            raise BadRequest("this speculator", reason)
        coming = sum(isinstance(event, Deliver) for event in events)
        if self._unconfirmed + coming > self._unconfirmed_max:
            what = "records that are done and unconfirmed"
            raise Overloaded(what, self._unconfirmed_max, "unconfirmed_max")
        # What raises may have changed the application's state halfway: nothing is built on that.
        self._sound = False
        for batch in self._batches(events):
            self._step(batch)
        self._sound = True

    async def run(self, source: Source) -> None:
        """Follow a subscription until it ends, which its error tells, or until cancelled.

        While too much is unconfirmed, nothing but confirmations and failures is taken.
        """
        while True:
            self.take(*await source.take(records_max=self._unconfirmed_max - self._unconfirmed))

    def _batches(self, events: Sequence[Event]) -> Iterator[list[Deliver] | Confirm | Fail]:
        """Records that follow each other are done together."""
        batch: list[Deliver] = []
        for event in events:
            if not isinstance(event, Deliver):
                if batch:
                    yield batch
                    batch = []
                yield event
                continue
            if batch and (
                len(batch) == self._batch_max or batch[0].speculative != event.speculative
            ):
                yield batch
                batch = []
            batch.append(event)
        if batch:
            yield batch

    def _step(self, step: list[Deliver] | Confirm | Fail) -> None:
        match step:
            case Confirm(up_to):
                self._confirm(up_to)
            case Fail(since):
                self._fail(since)
            case list():
                self._compute([each.record for each in step])
                if not step[-1].speculative:
                    self._confirm(step[-1].record.position + 1)
            case _:
                assert_never(step)

    def _compute(self, records: Sequence[LogRecord]) -> None:
        self._done.append((records, self._do(records)))
        self._unconfirmed += len(records)

    def _confirm(self, up_to: Position) -> None:
        while self._done and self._done[0][0][-1].position < up_to:
            records, left = self._done.popleft()
            self._unconfirmed -= len(records)
            self.confirmed = records[-1].position + 1
            if self._on_confirm is not None:
                self._on_confirm(records, left)
        if not self._done:
            self.confirmed = max(self.confirmed, up_to)

    def _fail(self, since: Position) -> None:
        assert since >= self.confirmed, "what is confirmed never fails (G4)"
        if not self._done or self._done[-1][0][-1].position < since:
            return
        self.rollbacks += 1
        while self._done and self._done[-1][0][-1].position >= since:
            records, left = self._done[-1]
            self._undo(records, left)
            self._done.pop()
            self._unconfirmed -= len(records)
            right = [record for record in records if record.position < since]
            if right:
                self._compute(right)


class Speculator(BatchSpeculator[D]):
    """Computes record by record: `do(record)` returns what `undo(record, done)` needs."""

    def __init__(
        self,
        do: Callable[[LogRecord], D],
        undo: Callable[[LogRecord, D], None],
        on_confirm: Callable[[LogRecord, D], None] | None = None,
        *,
        unconfirmed_max: int = UNCONFIRMED_MAX,
    ) -> None:
        """`undo` is called for the last record first; `on_confirm` once for each that is
        confirmed, in order.
        """
        super().__init__(
            lambda records: do(records[0]),
            lambda records, left: undo(records[0], left),
            None if on_confirm is None else lambda records, left: on_confirm(records[0], left),
            batch_max=1,
            unconfirmed_max=unconfirmed_max,
        )
