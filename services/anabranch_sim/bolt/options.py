"""What a seed decides before anything happens: the size of the cluster, its limits, its faults.

Swarm testing: each run has only some of the faults, so that common ones don't drown rare ones.
"""

from random import Random

import msgspec

from anabranch.core.limits import KIB, MIB, Limits
from anabranch_sim.bolt.compactors.options import compactors_of, with_compactors

FAULTS = (
    "cuts",
    "clocks",
    "crashes",
    "disk",
    "drains",
    "full",
    "journal",
    "network",
    "pauses",
    "power",
    "resets",
    "store",
    "upgrades",
    "zombies",
)
_QUIET = 0.1
"""Of all runs have no fault: a healthy cluster must be right too."""

_GROUPS = 0.5
"""Of all runs have a metadata group."""

_OPTIONS_SALT = 0x5EED
_COMPACTION_SALT = 0xC0B1
_BOUNDS_SALT = 0xB0B0
_ENGINES_SALT = 0xE96B2
_WRITERS_SALT = 0xAD3C
_SCANS_SALT = 0x675D
_COMPACTED = 0.6
"""Of all runs have small extents copied together."""
_SCANS = 0.3
"""Of all runs have readers that plan scans, and read them after the grace of garbage."""
_ENGINES = 0.2
"""Of all runs have logs of another engine in their catalogue."""
_WRITERS = 0.2
"""Of all runs have stream processors."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Printed when a seed fails; nothing else but the seed is needed to run it again."""

    seed: int
    embedded: bool
    """Metadata and the one broker in one process, as `anabranch up` runs them."""
    members: int
    """Of the metadata group that journals to etcd; 0: one leader journals to its disk."""
    brokers: int
    clients: int
    calls: int
    """Of each client."""
    chaos_ms: int
    """How long faults come."""
    faults: tuple[str, ...]
    limits: Limits
    segment_bytes: int
    ahead_bytes: int
    lease_ms: int
    kept_entries: int
    """Of the journal in etcd, before its snapshot."""
    compressed: bool
    engine_clients: int
    """Clients of logs that another engine serves."""
    stream_writers: int
    """Stream processors, which append with writer marks."""
    scanners: int
    """Readers that plan scans."""
    compactors: int
    """Programs that copy small extents under epochs of their own."""

    @staticmethod
    def of(seed: int) -> "Options":
        rng = Random(seed ^ _OPTIONS_SALT)
        members = 3 if rng.random() < _GROUPS else 0
        embedded = not members and rng.random() < 0.5
        quiet = rng.random() < _QUIET
        faults = () if quiet else tuple(fault for fault in FAULTS if rng.random() < 0.35)
        return Options(
            seed=seed,
            embedded=embedded,
            members=members,
            brokers=1 if embedded else rng.choice((1, 2, 3, 4) if members else (1, 2)),
            clients=rng.choice((2, 3, 4, 6)),
            calls=rng.choice((15, 30, 45)),
            chaos_ms=rng.choice((3_000, 8_000, 15_000)),
            faults=faults,
            limits=with_compactors(
                _bounds(
                    Random(seed ^ _BOUNDS_SALT),
                    _compaction(Random(seed ^ _COMPACTION_SALT), _limits(rng)),
                ),
                seed,
            ),
            segment_bytes=rng.choice((2 * KIB, 16 * KIB, MIB)),
            ahead_bytes=rng.choice((512, 4 * KIB)),
            lease_ms=rng.choice((500, 1_000, 3_000)),
            kept_entries=rng.choice((0, 3, 30)),
            compressed=rng.random() < 0.1,
            engine_clients=_engine_clients(Random(seed ^ _ENGINES_SALT)),
            stream_writers=_stream_writers(Random(seed ^ _WRITERS_SALT)),
            scanners=_scanners(Random(seed ^ _SCANS_SALT)),
            compactors=compactors_of(seed),
        )

    def __str__(self) -> str:
        usual = Limits()
        limits = ", ".join(
            f"{name}={value}"
            for name in Limits.__struct_fields__
            if (value := getattr(self.limits, name)) != getattr(usual, name)
        )
        group = f"{self.members} members with leases of {self.lease_ms} ms, " * (self.members > 0)
        size = "one process" if self.embedded else f"{group}{self.brokers} brokers"
        return (
            f"{size}, {self.clients} clients x {self.calls} calls, "
            f"{self.engine_clients} of another engine, {self.stream_writers} stream writers, "
            f"{self.scanners} scanners, {self.compactors} compactors, "
            f"{self.chaos_ms} ms of "
            f"{'+'.join(self.faults) or 'no faults'}; {limits}; segments of {self.segment_bytes}"
        )


def _engine_clients(rng: Random) -> int:
    """Drawn by itself: a seed's other options stay what they were."""
    return rng.choice((1, 2, 3)) if rng.random() < _ENGINES else 0


def _stream_writers(rng: Random) -> int:
    """Drawn by itself, as above."""
    return rng.choice((1, 1, 2)) if rng.random() < _WRITERS else 0


def _scanners(rng: Random) -> int:
    return rng.choice((1, 2, 4)) if rng.random() < _SCANS else 0


def _limits(rng: Random) -> Limits:
    return Limits(
        object_bytes_max=rng.choice((KIB, 8 * KIB, 4 * MIB)),
        linger_ms=rng.choice((0, 2, 20)),
        puts_in_flight_max=rng.choice((1, 2, 4)),
        cache_bytes=rng.choice((1, KIB, 64 * KIB, 256 * MIB)),
        read_bytes_max=rng.choice((KIB, 4 * MIB)),
        subscription_bytes=rng.choice((KIB, 4 * MIB)),
        blocked_wait_ms=rng.choice((300, 2_000)),
        grace_ms=20_000,
        quarantine_ms=10_000,
        gc_interval_ms=rng.choice((60, 500, 500, 3_000)),
        lineage_segments_max=rng.choice((2, 8, 65_536)),
        group_commands_max=rng.choice((1, 3, 1_000)),
        snapshot_bytes=rng.choice((KIB, 8 * KIB, 64 * MIB)),
        watch_ms=rng.choice((200, 1_000)),
        propose_retry_ms=rng.choice((200, 2_000)),
        alive_ms=rng.choice((200, 400)),
        silence_ms=rng.choice((1_000, 2_000)),
        drain_ms=rng.choice((500, 5_000)),
        tombstone_ms=86_400_000,
    )


def _compaction(rng: Random, limits: Limits) -> Limits:
    """Drawn by itself: a seed's other options stay what they were."""
    if rng.random() >= _COMPACTED:
        return msgspec.structs.replace(limits, compact_extents_min=0)
    return msgspec.structs.replace(
        limits,
        compact_extents_min=rng.choice((2, 2, 3, 5)),
        compact_extent_bytes_max=rng.choice((300, KIB, MIB)),
        compact_age_ms=rng.choice((0, 30, 500)),
        compact_span_ms=rng.choice((0, 1, 100, 5_000)),
        compact_wait_ms=rng.choice((300, 2_000)),
    )


def _bounds(rng: Random, limits: Limits) -> Limits:
    """On what a broker asks of the store at once, and holds for one log."""
    return msgspec.structs.replace(
        limits,
        puts_per_s_max=rng.choice((20, 1_000_000, 1_000_000)),
        log_queue_bytes_max=rng.choice((4 * KIB, 32 * MIB)),
        gets_in_flight_max=rng.choice((1, 3, 64)),
        read_gap_bytes_max=rng.choice((1, KIB, MIB)),
        read_ahead_bytes=rng.choice((KIB, 4 * MIB)),
    )
