"""What a seed decides before anything happens in a simulation of a lazy front."""

from random import Random

from msgspec import Struct, structs

from anabranch.core.limits import KIB, MIB
from anabranch_sim.bolt import options as bolt

FAULTS = (
    "away",
    "blackouts",
    "brokers",
    "clocks",
    "controllers",
    "crashes",
    "cuts",
    "disk",
    "drains",
    "full",
    "leaders",
    "network",
    "pauses",
    "resets",
    "sequencers",
    "store",
    "successions",
    "zombies",
)
ENDS = "ends"
"""Appends become direct, and the front ends."""
_SALT = 0x1A27
_ENDS_SALT = 0xE4D5
_ENDS = 0.2
_QUIET = 0.1
"""Of all runs have no fault."""
_TRAITS = ("bursts", "forks", "mortals", "tiny rings")


class Options(Struct, frozen=True, kw_only=True):
    """Printed when a seed fails; nothing else but the seed is needed to run it again."""

    seed: int
    fsync: bool
    sequencers: int
    controllers: int
    appenders: int
    batches: int
    """Of each appender."""
    questions: int
    """Reads of the log, and questions for the front's tail."""
    chaos_ms: int
    faults: tuple[str, ...]
    traits: tuple[str, ...]
    ring_bytes: int
    present_ms: int
    bolt: bolt.Options
    """Of the brokers and metadata behind the front."""

    @staticmethod
    def of(seed: int) -> "Options":
        rng = Random(seed ^ _SALT)
        quiet = rng.random() < _QUIET
        faults = () if quiet else tuple(each for each in FAULTS if rng.random() < 0.25)
        traits = tuple(each for each in _TRAITS if rng.random() < 0.4)
        if Random(seed ^ _ENDS_SALT).random() < _ENDS:
            # By a draw of its own, which leaves other seeds as they were.
            traits = (*traits, ENDS)
        present_ms = rng.choice((20, 50))
        ring_bytes = 2 * KIB if "tiny rings" in traits else MIB
        return Options(
            seed=seed,
            fsync=rng.random() < 0.6,
            sequencers=rng.choice((1, 2, 2, 3)),
            controllers=rng.choice((1, 2, 3)),
            appenders=rng.choice((1, 2, 3)),
            batches=rng.choice((5, 15, 30)),
            questions=rng.choice((3, 8)),
            chaos_ms=rng.choice((1_000, 2_000, 4_000)),
            faults=faults,
            traits=traits,
            ring_bytes=ring_bytes,
            present_ms=present_ms,
            bolt=_behind(seed, rng.choice((0, 0, 3)), rng.choice((1, 2)), ring_bytes, present_ms),
        )

    def __str__(self) -> str:
        behind = self.bolt
        return (
            f"{'fsync' if self.fsync else 'memory'}, {self.sequencers} sequencers, "
            f"{self.controllers} controllers, {behind.members} members, {behind.brokers} brokers, "
            f"{self.appenders} appenders x {self.batches}, {self.questions} questions, "
            f"{self.chaos_ms} ms of {'+'.join(self.faults) or 'no faults'} with "
            f"{'+'.join(self.traits) or 'nothing more'}; rings of {self.ring_bytes}, "
            f"signs of life each {self.present_ms} ms"
        )


def _behind(
    seed: int, members: int, brokers: int, ring_bytes: int, present_ms: int
) -> bolt.Options:
    """A cluster whose limits are drawn as Bolt's own simulation draws them."""
    drawn = bolt.Options.of(seed)
    silent_ms = 8 * present_ms
    limits = structs.replace(
        drawn.limits,
        batch_bytes_max=min(drawn.limits.batch_bytes_max, ring_bytes // 2),
        object_bytes_max=max(drawn.limits.object_bytes_max, 8 * KIB),
        puts_per_s_max=1_000_000,
        ring_bytes_max=ring_bytes,
        present_ms=present_ms,
        silent_ms=silent_ms,
        return_ms=2 * silent_ms,
        straggle_ms=2 * silent_ms,
        straggles_ms=20 * silent_ms,
    )
    return structs.replace(
        drawn,
        embedded=False,
        members=members,
        brokers=brokers,
        faults=(),
        limits=limits,
        compressed=False,
    )
