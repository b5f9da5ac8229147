"""A writer of a log, for programs without an event loop; see `Writer` of `anabranch.aio`."""

from collections.abc import Iterable, Mapping

from anabranch.client.bolt import writers
from anabranch.client.bolt.sync_receipts import Receipt, waiting
from anabranch.client.bolt.writers import PartAppended
from anabranch.client.driver.handover import Handover
from anabranch.client.session.arguments import VALUES, VALUES_SHOWN, several
from anabranch.core.bolt.protocol.marks import WriterState
from anabranch.core.records.record import Record


class Writer:
    """A name under which a program appends versions, each in parts, each part once."""

    def __init__(self, loop: Handover, writer: writers.Writer) -> None:
        self._loop, self._writer = loop, writer

    def __repr__(self) -> str:
        return repr(self._writer)

    @property
    def name(self) -> str:
        return self._writer.name

    def append(
        self,
        values: Iterable[bytes | Record],
        *,
        version: int,
        part: int = 0,
        timeout: float | None = None,
    ) -> PartAppended[Receipt]:
        """Append a whole part of a version, or what of it the log doesn't have.

        Tried again, also by another program and after any time, it must have the same records in
        the same order: PartDiffers if a batch hasn't. `timeout`: of each batch.
        """
        # Iterated over here, batch by batch: a generator may ask this client for something, which
        # the loop itself may not.
        made = iter(several(VALUES, values, VALUES_SHOWN))
        attempt = self._writer.attempt(version=version, part=part, timeout=timeout)
        try:
            for batch in writers.cut(made):
                self._loop.run(attempt.send(batch))
            done = self._loop.run(attempt.result())
        finally:
            self._loop.run(attempt.drop())
        first = None if done.first is None else waiting(self._loop, done.first)
        return PartAppended(done.batches, done.records, done.repeated, first, done.complete)

    def complete(
        self, version: int, parts: Mapping[int, int], *, timeout: float | None = None
    ) -> None:
        """Close a version that is in the log whole: `parts` are its parts, each with how many
        batches it has. Done again, it changes nothing.

        WriterConflict if the log has other parts, or a lower version that isn't complete.
        """
        self._loop.run(self._writer.complete(version, parts, timeout=timeout))

    def release(self, *, timeout: float | None = None) -> None:
        """Have the log forget this writer. What is appended under its name afterwards, is new."""
        self._loop.run(self._writer.release(timeout=timeout))

    def state(self, *, timeout: float | None = None) -> WriterState | None:
        """What the log itself remembers of this writer; None if nothing."""
        return self._loop.run(self._writer.state(timeout=timeout))
