"""What a seed decides before anything happens in a simulation of Erwin."""

from random import Random

from msgspec import Struct, structs

from anabranch.core.limits import KIB, MIB

FAULTS = (
    "backups",
    "clocks",
    "controllers",
    "crashes",
    "cuts",
    "disk",
    "full",
    "leaders",
    "network",
    "outages",
    "pauses",
    "primaries",
    "resets",
    "sequencers",
    "shards",
    "successions",
    "zombies",
)
ORDEALS = ("wipes", "blackouts")
"""Losses of all that a node holds: each has a run to itself, or more would be lost than a log can
lose.
"""
_SALT = 0xE2317
_ORDEAL_SALT = 0x0DEA1
_ORDEAL = 0.12
_QUIET = 0.15
"""Of all runs have no fault."""
_TRAITS = ("bursts", "joins", "mortals", "tiny rings", "trims")


class Options(Struct, frozen=True, kw_only=True):
    """Printed when a seed fails; nothing else but the seed is needed to run it again."""

    seed: int
    mode: str
    fsync: bool
    sequencers: int
    members: int
    """Of a view, at the most."""
    controllers: int
    """One has a journal of its own; several share etcd's."""
    shards: int
    copies: int
    """Replicas of each shard."""
    appenders: int
    batches: int
    """Of each appender."""
    followers: int
    questions: int
    """Reads and questions for the tail."""
    chaos_ms: int
    faults: tuple[str, ...]
    traits: tuple[str, ...]
    segment_bytes: int
    ring_bytes: int
    present_ms: int

    @staticmethod
    def of(seed: int) -> "Options":
        rng = Random(seed ^ _SALT)
        quiet = rng.random() < _QUIET
        faults = () if quiet else tuple(each for each in FAULTS if rng.random() < 0.25)
        traits = tuple(each for each in _TRAITS if rng.random() < 0.3)
        sequencers = rng.choice((1, 2, 2, 3, 3))
        drawn = Options(
            seed=seed,
            mode=rng.choice(("m", "st")),
            fsync=rng.random() < 0.6,
            sequencers=sequencers,
            members=sequencers,
            controllers=rng.choice((1, 1, 2, 3)),
            shards=rng.choice((1, 1, 2, 2, 3)),
            copies=rng.choice((1, 2, 2, 3)),
            appenders=rng.choice((1, 2, 3)),
            batches=rng.choice((5, 15, 40)),
            followers=rng.choice((1, 2, 3)),
            questions=rng.choice((5, 15)),
            chaos_ms=rng.choice((600, 1_500, 3_000)),
            faults=faults,
            traits=traits,
            segment_bytes=rng.choice((2 * KIB, 16 * KIB, MIB)),
            ring_bytes=2 * KIB if "tiny rings" in traits else 64 * MIB,
            present_ms=rng.choice((20, 50)),
        )
        return _put_to_the_test(drawn)

    def __str__(self) -> str:
        durability = "fsync" if self.fsync else "memory"
        return (
            f"mode {self.mode}, {durability}, {self.sequencers} sequencers, "
            f"{self.controllers} controllers, {self.shards} shards of {self.copies}, "
            f"{self.appenders} appenders x {self.batches}, {self.followers} followers, "
            f"{self.questions} questions, "
            f"{self.chaos_ms} ms of {'+'.join(self.faults) or 'no faults'} with "
            f"{'+'.join(self.traits) or 'nothing more'}; segments of {self.segment_bytes}, "
            f"rings of {self.ring_bytes}, signs of life each {self.present_ms} ms"
        )


def _put_to_the_test(options: Options) -> Options:
    """By a draw of its own, which leaves other seeds as they were."""
    rng = Random(options.seed ^ _ORDEAL_SALT)
    if rng.random() >= _ORDEAL:
        return options
    if options.fsync:
        return structs.replace(
            options, faults=("wipes",), chaos_ms=4_000, sequencers=3, members=3, copies=2
        )
    return structs.replace(options, faults=("blackouts",), chaos_ms=3_000)
