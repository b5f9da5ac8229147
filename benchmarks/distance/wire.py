"""A client's connection whose way to the server takes longer than it does."""

from functools import partial
from typing import TypeVar

from anabranch.client.driver.wire import Wire
from anabranch.core.machine import Buffer
from benchmarks.distance.delay import Delay

A = TypeVar("A")


class DelayedWire(Wire[A]):
    """The delay passes before bytes are written, and before bytes are handled that came. Its owner
    stops it.
    """

    delay: Delay

    def send(self, buffers: list[Buffer]) -> None:
        self.delay.after(partial(self._send, buffers))

    def data_received(self, data: bytes) -> None:
        self.delay.after(partial(super().data_received, data))

    def connection_lost(self, exc: Exception | None) -> None:
        self.delay.after(partial(super().connection_lost, exc))

    def _send(self, buffers: list[Buffer]) -> None:
        if not self.closing:  # it may have ended on the way
            super().send(buffers)
