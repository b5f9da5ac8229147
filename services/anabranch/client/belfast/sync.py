"""The client of Belfast for programs without an event loop: `with anabranch.belfast.connect(url)`.

The same names as in `anabranch.belfast.aio`, each waiting for what it does. A thread runs the
asyncio client; any number of threads may use it.
"""

from contextlib import ExitStack

from anabranch.client.belfast import aio
from anabranch.client.belfast.sync_log import Appending, Events, Log
from anabranch.client.driver.handover import Handover
from anabranch.client.driver.loop import LoopThread
from anabranch.client.session.settings import Settings

__all__ = ["Appending", "Events", "Log", "connect"]


def connect(
    url: str, *, timeout: float = aio.CONNECT_TIMEOUT_S, settings: Settings | None = None
) -> Log:
    """A log of which a node has answered; use it with `with`, or close it. The URL is as in
    `anabranch.belfast.aio`.
    """
    connecting = aio.connect(url, timeout=timeout, settings=settings)
    with ExitStack() as failing:
        thread = LoopThread()
        failing.callback(thread.stop)
        wrapped = thread.run(connecting.opened())
        failing.pop_all()
    return Log(Handover(thread), wrapped)
