"""Anabranch: a shared log that can be forked, read ahead of its order, and appended to cheaply."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anabranch import aio, belfast, errors
    from anabranch.client.bolt.compactors import CopyOrder
    from anabranch.client.bolt.scans import PlannedSlice
    from anabranch.client.bolt.sync_compactors import CompactorJob
    from anabranch.client.bolt.sync_log import Appending, Cursor, Events, Log, Receipt
    from anabranch.client.bolt.sync_scans import ScanPlan
    from anabranch.client.bolt.sync_writers import Writer
    from anabranch.client.bolt.writers import PartAppended
    from anabranch.client.logs import AnyLog
    from anabranch.client.session.records import (
        Appended,
        Batch,
        Confirm,
        Deliver,
        Event,
        Fail,
        LogRecord,
        Origin,
    )
    from anabranch.client.session.settings import Settings
    from anabranch.client.sync import Service, connect
    from anabranch.client.sync_erwin_log import ErwinLog
    from anabranch.client.sync_speculative_log import SpeculativeLog
    from anabranch.core.bolt.protocol.marks import WriterState
    from anabranch.core.bolt.protocol.scans import Plan
    from anabranch.core.errors import AnabranchError
    from anabranch.core.quota import Quota
    from anabranch.core.records.codecs import Codec
    from anabranch.core.records.record import Record
    from anabranch.core.types import Kind, OnParentDelete, OnPromote

# Whoever imports a part of this package passes here: it must cost next to nothing.
_HOMES = {
    "Appended": "anabranch.client.session.records",
    "Batch": "anabranch.client.session.records",
    "Confirm": "anabranch.client.session.records",
    "Deliver": "anabranch.client.session.records",
    "Event": "anabranch.client.session.records",
    "Fail": "anabranch.client.session.records",
    "LogRecord": "anabranch.client.session.records",
    "Origin": "anabranch.client.session.records",
    "Settings": "anabranch.client.session.settings",
    "AnyLog": "anabranch.client.logs",
    "ErwinLog": "anabranch.client.sync_erwin_log",
    "SpeculativeLog": "anabranch.client.sync_speculative_log",
    "Service": "anabranch.client.sync",
    "connect": "anabranch.client.sync",
    "Appending": "anabranch.client.bolt.sync_log",
    "Cursor": "anabranch.client.bolt.sync_log",
    "Events": "anabranch.client.bolt.sync_log",
    "Log": "anabranch.client.bolt.sync_log",
    "Receipt": "anabranch.client.bolt.sync_log",
    "PartAppended": "anabranch.client.bolt.writers",
    "Plan": "anabranch.core.bolt.protocol.scans",
    "PlannedSlice": "anabranch.client.bolt.scans",
    "ScanPlan": "anabranch.client.bolt.sync_scans",
    "CompactorJob": "anabranch.client.bolt.sync_compactors",
    "CopyOrder": "anabranch.client.bolt.compactors",
    "Writer": "anabranch.client.bolt.sync_writers",
    "WriterState": "anabranch.core.bolt.protocol.marks",
    "Quota": "anabranch.core.quota",
    "AnabranchError": "anabranch.core.errors",
    "Codec": "anabranch.core.records.codecs",
    "Record": "anabranch.core.records.record",
    "Kind": "anabranch.core.types",
    "OnParentDelete": "anabranch.core.types",
    "OnPromote": "anabranch.core.types",
}

__all__ = [
    "AnabranchError",
    "AnyLog",
    "Appended",
    "Appending",
    "Batch",
    "Codec",
    "CompactorJob",
    "Confirm",
    "CopyOrder",
    "Cursor",
    "Deliver",
    "ErwinLog",
    "Event",
    "Events",
    "Fail",
    "Kind",
    "Log",
    "LogRecord",
    "OnParentDelete",
    "OnPromote",
    "Origin",
    "PartAppended",
    "Plan",
    "PlannedSlice",
    "Quota",
    "Receipt",
    "Record",
    "ScanPlan",
    "Service",
    "Settings",
    "SpeculativeLog",
    "Writer",
    "WriterState",
    "aio",
    "belfast",
    "connect",
    "errors",
]


def __getattr__(name: str) -> Any:
    if name in {"aio", "belfast", "errors"}:
        return import_module(f"anabranch.{name}")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"anabranch has no {name}")
    return getattr(import_module(home), name)
