"""A log as JSON and as rows of a table."""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import asdict

from anabranch.cli.render.words import counted, duration, number, size
from anabranch.core.bolt.protocol.commands import BOLT, Description, EngineSettings
from anabranch.core.bolt.protocol.queries import ELSEWHERE
from anabranch.core.quota import Quota
from anabranch.core.types import MS, Kind, Nanoseconds


def document(log: Description) -> dict[str, Any]:
    """The log as HTTP describes it; fields are only ever added."""
    shown = _document(log)
    return shown if log.engine == BOLT else shown | dict.fromkeys(ELSEWHERE)


def _document(log: Description) -> dict[str, Any]:
    return {
        "id": log.id,
        "name": log.name,
        "kind": log.kind.value,
        "root": log.root,
        "parent": log.parent,
        "fork_point": log.fork_point,
        "start": log.start,
        "tail": log.tail,
        "settled": log.settled,
        "own_records": log.own_records,
        "promotable": log.promotable,
        "depth": log.depth,
        "forks": log.forks,
        "undecided": log.undecided,
        "append_blocked_by": log.append_blocked_by,
        "generation": log.generation,
        "created_at": log.created_at,
        "broker": log.broker,
        "address": log.address,
        "expires_at": log.expires_at,
        "on_parent_delete": log.on_parent_delete.value,
        "quota": None if log.quota is None else quota_document(log.quota),
        "by": log.by,
        "why": log.why,
        "owner": log.owner,
        "engine": log.engine,
        "settings": None if log.settings is None else asdict(log.settings),
        "front": None if log.front is None else _front_document(log.front),
    }


def _front_document(front: EngineSettings) -> dict[str, int | str]:
    return {"sequencers": front.sequencers, "durability": front.durability}


def quota_document(quota: Quota) -> dict[str, int | None]:
    return {
        "append_bytes_per_s": quota.append_bytes_per_s,
        "append_records_per_s": quota.append_records_per_s,
        "read_bytes_per_s": quota.read_bytes_per_s,
        "burst_ms": quota.burst_ms,
    }


def quota_words(quota: Quota | None) -> str:
    """Nothing without one."""
    if quota is None:
        return ""
    appended, records, read = (
        quota.append_bytes_per_s,
        quota.append_records_per_s,
        quota.read_bytes_per_s,
    )
    limited = [
        "" if appended is None else f"appends {size(appended)}/s",
        "" if records is None else f"appends {counted(records, 'record')}/s",
        "" if read is None else f"reads {size(read)}/s",
        f"bursts of {duration(quota.burst_ms / 1_000)}",
    ]
    return ", ".join(filter(None, limited))


def rows_of(log: Description, cursors: dict[str, int], now: Nanoseconds) -> list[tuple[str, str]]:
    """All about a log, a line each; what it doesn't have is left out."""
    rows = [
        ("name", log.name),
        ("kind", kind(log)),
        *(_rows_of_bolt(log, now) if log.settings is None else _rows_of_settings(log.settings)),
        ("quota", quota_words(log.quota)),
        ("age", age(log, now)),
        ("by", log.by),
        ("why", log.why),
        ("declared by", log.owner),
        ("cursors", ", ".join(f"{name} at {at}" for name, at in cursors.items())),
    ]
    return [row for row in rows if row[1]]


def _rows_of_bolt(log: Description, now: Nanoseconds) -> Iterator[tuple[str, str]]:
    yield "parent", f"{log.parent} at {log.fork_point}" if log.parent else ""
    yield "positions", f"{log.start} up to {log.tail} (not included)"
    yield "its own", counted(log.own_records, "record")
    yield "forks", number(log.forks) if log.forks else ""
    yield "appends", _front(log.front, log.front_ends) if log.front is not None else ""
    yield "held up", held_by(log)
    yield "squashed in", remaining(log, now)
    yield "served by", f"{log.broker} at {log.address}" if log.address else ""


def _front(front: EngineSettings, ends: bool) -> str:
    if ends:
        return "none: they become direct when the sequencers have had committed what they hold"
    where = "on the disks" if front.durability == "fsync" else "in the memories"
    several = counted(front.sequencers, "sequencer")
    return f"lazy: acknowledged {where} of {several}, then committed"


def _rows_of_settings(settings: EngineSettings) -> Iterator[tuple[str, str]]:
    yield "shards", f"{settings.shards}, of {counted(settings.replicas, 'replica')} each"
    yield "sequencers", str(settings.sequencers)
    yield "mode", settings.mode
    yield "durability", settings.durability
    yield "black box", settings.black_box
    yield "served by", "this service" if settings.embedded else ", ".join(settings.addresses)
    yield "cluster", settings.cluster


def kind(log: Description) -> str:
    if log.settings is not None:
        return log.engine
    words = {Kind.ROOT: "root", Kind.CONTINUOUS: "continuous", Kind.SEVERED: "severed"}
    promotable, lazy = log.promotable, log.front is not None
    return words[log.kind] + ", promotable" * promotable + ", lazy" * lazy


def held_by(log: Description) -> str:
    """Which undecided promotable fork stands in whose way; nothing if none does."""
    if log.append_blocked_by:
        return f"no appends, reads below {log.settled}: {log.append_blocked_by} is undecided"
    if log.undecided:
        return f"reads below {log.settled}: {log.undecided} is undecided"
    return ""


def age(log: Description, now: Nanoseconds) -> str:
    return duration(max(0, now // MS - log.created_at) / 1_000)


def remaining(log: Description, now: Nanoseconds) -> str:
    """Until it is squashed by its time to live; nothing without one."""
    if log.expires_at is None:
        return ""
    return duration(max(0, log.expires_at - now // MS) / 1_000)
