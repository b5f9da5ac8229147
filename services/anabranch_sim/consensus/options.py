"""What a seed decides before anything happens in a simulation of a consensus group."""

from random import Random

from msgspec import Struct

from anabranch.core.limits import KIB

FAULTS = (
    "crashes",
    "cuts",
    "disk",
    "drains",
    "elections",
    "full",
    "leaders",
    "network",
    "pauses",
    "power",
)
_QUIET = 0.05
"""The share of runs without a fault."""
_SALT = 0xC0117


class Options(Struct, frozen=True, kw_only=True):
    """Printed when a seed fails; nothing else but the seed is needed to run it again."""

    seed: int
    members: int
    chaos_ms: int
    faults: tuple[str, ...]
    heartbeat_ms: int
    election_ms: int
    propose_ms: int
    kept_entries: int
    snapshot_entries: int
    segment_bytes: int

    @staticmethod
    def of(seed: int) -> "Options":
        rng = Random(seed ^ _SALT)
        quiet = rng.random() < _QUIET
        heartbeat_ms = rng.choice((5, 10, 20))
        return Options(
            seed=seed,
            members=rng.choice((3, 3, 3, 5)),
            chaos_ms=rng.choice((1_000, 2_000)),
            faults=() if quiet else tuple(each for each in FAULTS if rng.random() < 0.4),
            heartbeat_ms=heartbeat_ms,
            election_ms=heartbeat_ms * rng.choice((2, 3, 5)),
            propose_ms=rng.choice((2, 10, 40)),
            kept_entries=rng.choice((3, 20, 20_000)),
            snapshot_entries=rng.choice((1, 1, 3, 20)),
            segment_bytes=rng.choice((2 * KIB, 16 * KIB)),
        )

    def __str__(self) -> str:
        return (
            f"{self.members} members, {self.chaos_ms} ms of {'+'.join(self.faults) or 'no faults'},"
            f" heartbeats each {self.heartbeat_ms} ms, elections after {self.election_ms} ms, "
            f"proposals each {self.propose_ms} ms, {self.kept_entries} entries kept, snapshots "
            f"after {self.snapshot_entries}, segments of {self.segment_bytes}"
        )
