"""A client whose way to every node takes longer than it does: it stands for distance."""

from functools import partial

from anabranch.client.belfast.link import Link
from anabranch.client.driver.wire import Wire
from anabranch.client.session.endpoint import Endpoint
from anabranch.client.session.settings import Settings
from anabranch.core.belfast.protocol.messages import ToClient
from anabranch.core.machine import Buffer
from benchmarks.belfast.delay import Delay


class DelayedWire(Wire[ToClient]):
    """Bytes are written, and heard of, so much later."""

    delay: Delay

    def send(self, buffers: list[Buffer]) -> None:
        self.delay.after(partial(super().send, buffers))

    def data_received(self, data: bytes) -> None:
        self.delay.after(partial(super().data_received, data))

    def connection_lost(self, exc: Exception | None) -> None:
        self.delay.after(partial(super().connection_lost, exc))

    def abort(self) -> None:
        self.delay.stop()
        super().abort()


class DelayedLink(Link):
    """`delay_us` passes before a request is written, and before a reply is heard."""

    def __init__(self, endpoint: Endpoint, settings: Settings, delay_us: int) -> None:
        super().__init__(endpoint, settings)
        self._delay_us = delay_us

    def wire(self, line: int) -> DelayedWire:
        wire = self.wire_of(DelayedWire, line)
        wire.delay = Delay(self._delay_us)
        return wire
