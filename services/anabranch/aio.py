"""The asyncio client: `async with anabranch.aio.connect(url) as service`."""

from anabranch.client.aio import Connecting, Service, connect
from anabranch.client.bolt.cursors import Cursor
from anabranch.client.bolt.log import Log
from anabranch.client.bolt.reads import Events
from anabranch.client.bolt.receipts import Appending, Receipt
from anabranch.client.bolt.writers import Writer
from anabranch.client.logs import AsyncLog as AnyLog

__all__ = [
    "AnyLog",
    "Appending",
    "Connecting",
    "Cursor",
    "Events",
    "Log",
    "Receipt",
    "Service",
    "Writer",
    "connect",
]
