"""A Bolt log with a lazy front, as a program without an event loop holds it."""

from collections.abc import Iterable

from anabranch.client import lazy_log
from anabranch.client.bolt.sync_log import Log, Receipt, waiting
from anabranch.client.driver.handover import Handover
from anabranch.client.session.arguments import VALUES, VALUES_SHOWN, several
from anabranch.client.session.records import Appended
from anabranch.core.records.record import Record
from anabranch.core.sequencing.protocol.messages import SequencingStatus


class LazyLog(Log):
    """A Bolt log whose appends are acknowledged in one round trip, before they are in the log.

    An append has a receipt in place of a position; `receipt.position()` waits for it.
    """

    def __init__(self, loop: Handover, wrapped: lazy_log.LazyLog) -> None:
        super().__init__(loop, wrapped)
        self._lazy = wrapped

    def append_many(
        self,
        values: Iterable[bytes | Record],
        *,
        together: bool = False,
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> list[Appended[Receipt]]:
        """Append all in order; cheaper than one by one.

        `together`, or with a `request_id`: all are one batch, of which all or none is appended.
        """
        if not together:
            return super().append_many(values, request_id=request_id, timeout=timeout)
        # Taken here: a generator may ask this client for something, which the loop itself may not.
        found = list(several(VALUES, values, VALUES_SHOWN))
        self._loop.run(self._loop.taken())
        done = self._lazy.append_many(found, together=True, request_id=request_id, timeout=timeout)
        return [waiting(self._loop, each) for each in self._loop.run(done)]

    def status(self, *, timeout: float | None = None) -> SequencingStatus:
        """What the front's leader sees: its view, how much the log has yet to commit, how much room
        the ring has and how long that lasts. Positions in it are the front's offsets.
        """
        return self._loop.run(self._lazy.status(timeout=timeout))
