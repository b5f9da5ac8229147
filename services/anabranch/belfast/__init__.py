"""The client of a Belfast deployment: appends to shards, and one log read ahead of its order.

`anabranch.belfast.connect(url)` for programs without an event loop, `anabranch.belfast.aio` for
those with one.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anabranch.belfast import aio
    from anabranch.client.belfast.speculator import BatchSpeculator, Speculator
    from anabranch.client.belfast.sync import Appending, Events, Log, connect
    from anabranch.client.session.settings import Settings
    from anabranch.core.belfast.protocol.messages import Directory, Status, Where

_HOMES = {
    "Settings": "anabranch.client.session.settings",
    "BatchSpeculator": "anabranch.client.belfast.speculator",
    "Speculator": "anabranch.client.belfast.speculator",
    "Appending": "anabranch.client.belfast.sync",
    "Events": "anabranch.client.belfast.sync",
    "Log": "anabranch.client.belfast.sync",
    "connect": "anabranch.client.belfast.sync",
    "Directory": "anabranch.core.belfast.protocol.messages",
    "Status": "anabranch.core.belfast.protocol.messages",
    "Where": "anabranch.core.belfast.protocol.messages",
}

__all__ = [
    "Appending",
    "BatchSpeculator",
    "Directory",
    "Events",
    "Log",
    "Settings",
    "Speculator",
    "Status",
    "Where",
    "aio",
    "connect",
]


def __getattr__(name: str) -> Any:
    if name == "aio":
        return import_module("anabranch.belfast.aio")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"anabranch.belfast has no {name}")
    return getattr(import_module(home), name)
