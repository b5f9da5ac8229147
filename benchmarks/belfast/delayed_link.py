"""A client whose way to every node takes longer than it does: it stands for distance."""

from anabranch.client.belfast.link import Link
from anabranch.client.session.endpoint import Endpoint
from anabranch.client.session.settings import Settings
from anabranch.core.belfast.protocol.messages import ToClient
from benchmarks.distance.delay import Delay
from benchmarks.distance.wire import DelayedWire


class DelayedLink(Link):
    """`delay_us` passes before a request is written, and before a reply is heard."""

    def __init__(self, endpoint: Endpoint, settings: Settings, delay_us: int) -> None:
        super().__init__(endpoint, settings)
        self._delay = Delay(delay_us)

    def wire(self, line: int) -> DelayedWire[ToClient]:
        wire = self.wire_of(DelayedWire[ToClient], line)
        wire.delay = self._delay
        return wire

    def close(self) -> None:
        super().close()
        self._delay.stop()
