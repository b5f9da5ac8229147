"""How an Erwin log is shown: its leader's status as tables, and rates between two looks at it."""

import re
from collections.abc import Iterator

from msgspec.structs import asdict

from anabranch.cli.render.words import instant, number, per_second, percent, share_of_all, size
from anabranch.core.sequencing.protocol.messages import SequencingStatus, ShardProgress

OVERVIEW = (
    "LEADER",
    ">VIEW",
    ">MEMBERS",
    "MODE",
    "DURABLE",
    ">STABLE",
    ">TAIL",
    ">TRIMMED",
    ">BACKLOG",
    "RING",
)
SHARDS = (
    "SHARD",
    "PRIMARY",
    ">EPOCH",
    ">REPLICAS",
    ">BEHIND",
    ">RECORDS",
    ">NO-OPS",
    ">READS",
    ">SLOW%",
    ">ORPHANS",
)


def document(found: SequencingStatus) -> dict[str, object]:
    """The same for programs: every field by its name."""
    lost = [{"view": view, "found_at": at} for view, at in found.lost_views]
    return {**asdict(found), "shards": [asdict(each) for each in found.shards], "lost_views": lost}


def overview(found: SequencingStatus) -> Iterator[tuple[str, ...]]:
    yield (
        found.leader,
        str(found.view),
        str(len(found.members)),
        found.mode,
        "on disks" if found.durability == "fsync" else "in memories",
        str(found.stable),
        str(found.tail),
        str(found.trimmed),
        number(found.backlog_records),
        f"{size(found.backlog_bytes)} of {size(found.ring_bytes_max)}",
    )


def shards(found: SequencingStatus) -> Iterator[tuple[str, ...]]:
    """In the order of their names; they join in any order."""
    for shard in sorted(found.shards, key=lambda each: by_number(each.name)):
        yield (
            shard.name,
            shard.primary,
            str(shard.epoch),
            str(len(shard.replicas)),
            _behind(found, shard),
            number(shard.records),
            share_of_all(shard.noops, shard.records),
            number(shard.reads),
            percent(shard.slow_reads, shard.reads),
            number(shard.orphans),
        )


def notes(found: SequencingStatus, expected: int) -> Iterator[str]:
    """What isn't in the tables: since when shards count, nodes that are still being started, what
    holds records up, and views of which acknowledged records are gone.
    """
    if found.shards:
        yield "RECORDS and what follows are counted since the shard's primary started"
    if len(found.shards) < expected:
        yield f"{len(found.shards)} of {expected} shards have joined so far"
    yield from obstacles(found)
    yield from lost(found.lost_views)


def obstacles(found: SequencingStatus) -> Iterator[str]:
    """What keeps shards from writing."""
    if found.held_up:
        yield f"records wait at the sequencers, held up by {found.held_up}"


def lost(views: tuple[tuple[int, int], ...]) -> Iterator[str]:
    """Views of which acknowledged records are gone."""
    for view, at in views:
        yield (
            f"view {view} was lost with its last member, as was found at {instant(at)}: records "
            "that were acknowledged in it and weren't ordered yet are gone"
        )


def by_number(name: str) -> tuple[tuple[str, int], ...]:
    """A key that sorts `shard-2` before `shard-10`."""
    parts = re.findall(r"(\D*)(\d*)", name)
    return tuple((words, int(digits or 0)) for words, digits in parts)


def _behind(found: SequencingStatus, shard: ShardProgress) -> str:
    """Positions whose rows the shard doesn't hold durably yet."""
    return number(max(0, found.tail - shard.upto))


class Rates:
    """What each shard did between two looks."""

    columns = (
        "SHARD",
        "PRIMARY",
        ">RECORDS/s",
        ">NO-OPS/s",
        ">READS/s",
        ">SLOW%",
        ">BEHIND",
    )

    def __init__(self) -> None:
        self._before: dict[str, ShardProgress] = {}
        self._at_s = 0.0

    def rows(self, found: SequencingStatus, now_s: float) -> Iterator[tuple[str, ...]]:
        took_s = now_s - self._at_s
        before, self._before = self._before, {shard.name: shard for shard in found.shards}
        self._at_s = now_s
        for shard in sorted(found.shards, key=lambda each: by_number(each.name)):
            last = before.get(shard.name)
            # Another primary counts anew.
            if last is None or last.primary != shard.primary:
                yield (shard.name, shard.primary, *("-",) * 4, _behind(found, shard))
                continue
            reads = shard.reads - last.reads
            yield (
                shard.name,
                shard.primary,
                per_second(shard.records - last.records, took_s),
                per_second(shard.noops - last.noops, took_s),
                per_second(reads, took_s),
                percent(shard.slow_reads - last.slow_reads, reads),
                _behind(found, shard),
            )
