"""A client's connection to one node, without a node."""

import asyncio
import gc
from typing import Any

from anabranch.client.belfast.connection import ClientLine


class Pipe(asyncio.Transport):
    """Nothing is at its other end."""

    def write(self, data: Any) -> None:
        pass


def test_a_connection_that_is_lost_after_its_dialer_left_is_no_overlooked_error() -> None:
    unhandled: list[dict[str, Any]] = []

    async def scenario() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, told: unhandled.append(told))
        line = ClientLine("a:1", lambda *_: None, lambda _: None, 0)
        line.connection_made(Pipe())
        line.connection_lost(ConnectionResetError("gone"))
        del line
        gc.collect()

    asyncio.run(scenario())
    assert not unhandled
