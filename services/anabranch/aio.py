"""The asyncio client: `async with anabranch.aio.connect(url) as service`."""

from anabranch.client.aio import Connecting, Service, connect
from anabranch.client.appending import Appending, Receipt
from anabranch.client.log import Cursor, Log
from anabranch.client.reading import Events

__all__ = [
    "Appending",
    "Connecting",
    "Cursor",
    "Events",
    "Log",
    "Receipt",
    "Service",
    "connect",
]
