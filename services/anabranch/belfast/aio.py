"""The asyncio client of Belfast: `async with anabranch.belfast.aio.connect(url) as log`."""

from anabranch.client.belfast.aio import *  # noqa: F403 - the names are listed there, once
