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
RECOVERIES = "recoveries"
"""Deaths between two steps of a view change or of a shard's takeover."""
STRAGGLERS = "stragglers"
"""One sequencer is slow, but there; the log does without it in the end."""
RENEWALS = "renewals"
"""Mode st: a shard's replicas are replaced one after the other while no push reaches the shard."""
DEAFNESS = "deafness"
"""Mode st: a shard's primary hears from no client, its backups do; it dies once it has bound
rows to no-ops.
"""
_SALT = 0xE2317
_RECOVERIES_SALT = 0x2EC04E
_RECOVERIES = 0.25
_STRAGGLERS_SALT = 0x51039
_STRAGGLERS = 0.03
_RENEWALS_SALT = 0x2E7E3
_RENEWALS = 0.03
_DEAFNESS_SALT = 0xDEAF
_DEAFNESS = 0.02
_ORDEAL_SALT = 0x0DEA1
_ORDEAL = 0.12
_DRAIN_SALT = 0xD0A2
_DRAIN = 0.1
"""Of all runs restart processes in an orderly way, beside their other faults."""
_BOX_SALT = 0xB0C5
_BOX = 0.6
"""Of all runs of mode m whose shards have one replica keep their records in black boxes."""
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
    boxes: float = 0.0
    """Shards keep their records in black boxes, of whose calls so many go wrong; 0: in journals."""

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
        return _boxed(_put_to_the_test(_drained(drawn)))

    def __str__(self) -> str:
        durability = "fsync" if self.fsync else "memory"
        return (
            f"mode {self.mode}, {durability}, {self.sequencers} sequencers, "
            f"{self.controllers} controllers, {self.shards} shards of {self.copies}, "
            f"{f'black boxes that fail {self.boxes:.0%}, ' if self.boxes else ''}"
            f"{self.appenders} appenders x {self.batches}, {self.followers} followers, "
            f"{self.questions} questions, "
            f"{self.chaos_ms} ms of {'+'.join(self.faults) or 'no faults'} with "
            f"{'+'.join(self.traits) or 'nothing more'}; segments of {self.segment_bytes}, "
            f"rings of {self.ring_bytes}, signs of life each {self.present_ms} ms"
        )


def _drained(options: Options) -> Options:
    """By a draw of its own, as ordeals are."""
    rng = Random(options.seed ^ _DRAIN_SALT)
    if rng.random() >= _DRAIN:
        return options
    return structs.replace(options, faults=(*options.faults, "drains"))


def _put_to_the_test(options: Options) -> Options:
    """By draws of their own, which leave other seeds as they were."""
    seed = options.seed
    if Random(seed ^ _STRAGGLERS_SALT).random() < _STRAGGLERS:
        return structs.replace(
            options,
            faults=(STRAGGLERS,),
            chaos_ms=8_000,
            sequencers=3,
            members=3,
            appenders=3,
            batches=40,
            traits=(),
            ring_bytes=64 * MIB,
            present_ms=20,
        )
    for fault, salt, share in (
        (RENEWALS, _RENEWALS_SALT, _RENEWALS),
        (DEAFNESS, _DEAFNESS_SALT, _DEAFNESS),
    ):
        if Random(seed ^ salt).random() < share:
            return structs.replace(
                options,
                mode="st",
                faults=(fault,),
                chaos_ms=4_000,
                copies=2,
                appenders=3,
                batches=40,
                traits=(),
                ring_bytes=64 * MIB,
                present_ms=20,
            )
    rng = Random(seed ^ _ORDEAL_SALT)
    if rng.random() >= _ORDEAL:
        if options.faults and Random(seed ^ _RECOVERIES_SALT).random() < _RECOVERIES:
            return structs.replace(options, faults=(*options.faults, RECOVERIES))
        return options
    if options.fsync:
        return structs.replace(
            options, faults=("wipes",), chaos_ms=4_000, sequencers=3, members=3, copies=2
        )
    return structs.replace(options, faults=("blackouts",), chaos_ms=3_000)


def _boxed(options: Options) -> Options:
    """By a draw of its own, which leaves other seeds as they were."""
    rng = Random(options.seed ^ _BOX_SALT)
    if options.mode != "m" or options.copies != 1 or rng.random() >= _BOX:
        return options
    return structs.replace(options, boxes=rng.choice((0.001, 0.05, 0.2)))
