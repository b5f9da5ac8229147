"""A mesh whose letters leave later than they are sent: it stands for distance between nodes."""

from functools import partial

import msgspec

from anabranch.shell.peers.mesh import Mesh
from benchmarks.distance.delay import Delay


class DelayedMesh(Mesh):
    """`delay_us` passes before a letter is written; their order stays."""

    delay_us = 0
    _delay: Delay | None = None

    def send(self, sender: str, to: str, message: msgspec.Struct) -> None:
        if self._delay is None:
            self._delay = Delay(self.delay_us)
        self._delay.after(partial(super().send, sender, to, message))

    async def stop(self) -> None:
        if self._delay is not None:
            self._delay.stop()
        await super().stop()
