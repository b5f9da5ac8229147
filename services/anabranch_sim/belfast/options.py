"""What a seed decides before anything happens in a simulation of Belfast."""

from random import Random

from msgspec import Struct, structs

from anabranch.core.belfast.ledger.rules import Rules
from anabranch.core.limits import KIB, MIB

FAULTS = (
    "backups",
    "clocks",
    "cuts",
    "disk",
    "full",
    "leaders",
    "network",
    "outages",
    "pauses",
    "power",
    "primaries",
    "resets",
    "sequencers",
    "shards",
)
ORDEALS = ("absences", "wipes")
"""Of one replica: each has a run to itself, or more would be lost than a shard can lose."""
_SALT = 0xBE1FA57
_ORDEAL_SALT = 0x0BDEA4
_ORDEAL = 0.08
"""Of all runs where shards have backups."""
_REST_SALT = 0x0E57
_STALL_SALT = 0x57A11
_STALL = 0.15
"""Of all runs: the whole machine is overloaded now and then, which is no fault."""
_QUIET = 0.2
"""Of all runs have no fault: nothing may be misspeculated then."""
_TRAITS = (
    "bursts",
    "filters",
    "joins",
    "leaves",
    "lulls",
    "stragglers",
    "trims",
)
"""What happens in good days, too."""


class Options(Struct, frozen=True, kw_only=True):
    """Printed when a seed fails; nothing else but the seed is needed to run it again."""

    seed: int
    sequencers: int
    shards: int
    copies: int
    """Replicas of each shard."""
    appenders: int
    batches: int
    """Of each appender."""
    observers: int
    log_clients: int
    """Clients that run the real client's machine."""
    chaos_ms: int
    """How long faults come."""
    faults: tuple[str, ...]
    traits: tuple[str, ...]
    rules: Rules
    heartbeat_ms: int
    """Of the sequencing group."""
    kept_entries: int
    """Of its log: who was away for longer gets the state, and has failed by then."""
    segment_bytes: int
    cache_bytes: int

    @staticmethod
    def of(seed: int) -> "Options":
        rng = Random(seed ^ _SALT)
        quiet = rng.random() < _QUIET
        faults = () if quiet else tuple(each for each in FAULTS if rng.random() < 0.25)
        rules = _rules(rng)
        shards = rng.choice((1, 2, 2, 2, 3, 3, 4, 8))
        drawn = Options(
            seed=seed,
            sequencers=rng.choice((1, 3, 3)),
            shards=shards,
            copies=rng.choice((1, 2, 2, 3)) if shards < 8 else 1,
            appenders=rng.choice((1, 2, 3)),
            batches=rng.choice((3, 8, 20)),
            observers=rng.choice((1, 2, 3)),
            log_clients=rng.choice((0, 1, 1, 2)),
            chaos_ms=rng.choice((300, 600, 1_200)),
            faults=faults,
            traits=tuple(each for each in _TRAITS if rng.random() < 0.3),
            rules=rules,
            heartbeat_ms=rng.choice((10, 20, 50)),
            kept_entries=2 * rules.fail_intervals if rng.random() < 0.5 else 20_000,
            segment_bytes=rng.choice((2 * KIB, 16 * KIB, MIB)),
            cache_bytes=rng.choice((1, KIB, MIB)),
        )
        return _put_to_the_test(_overloaded(_at_rest_soon(drawn)))

    def __str__(self) -> str:
        usual = Rules()
        rules = ", ".join(
            f"{name}={value}"
            for name in Rules.__struct_fields__
            if (value := getattr(self.rules, name)) != getattr(usual, name)
        )
        return (
            f"{self.sequencers} sequencers, {self.shards} shards of {self.copies}, "
            f"{self.appenders} appenders and {self.log_clients} log clients x {self.batches}, "
            f"{self.observers} observers, "
            f"{self.chaos_ms} ms of {'+'.join(self.faults) or 'no faults'} with "
            f"{'+'.join(self.traits) or 'nothing more'}; {rules}; "
            f"heartbeats each {self.heartbeat_ms} ms, {self.kept_entries} entries kept, "
            f"segments of {self.segment_bytes}, caches of {self.cache_bytes}"
        )


def _at_rest_soon(options: Options) -> Options:
    """By a draw of its own, which leaves other seeds as they were."""
    rng = Random(options.seed ^ _REST_SALT)
    idle = rng.choice((5, 20, 60, 2_000))
    rules = structs.replace(options.rules, idle_intervals=idle)
    return structs.replace(options, rules=rules)


def _overloaded(options: Options) -> Options:
    """By a draw of its own as well."""
    if Random(options.seed ^ _STALL_SALT).random() >= _STALL:
        return options
    return structs.replace(options, traits=(*options.traits, "stalls"))


def _put_to_the_test(options: Options) -> Options:
    """By a draw of its own, which leaves other seeds as they were."""
    rng = Random(options.seed ^ _ORDEAL_SALT)
    if options.copies < 2 or options.shards < 2 or rng.random() >= _ORDEAL:
        return options
    return structs.replace(
        options,
        faults=(rng.choice(ORDEALS),),
        chaos_ms=4_000,
        kept_entries=2 * options.rules.fail_intervals,
    )


def _rules(rng: Random) -> Rules:
    return Rules(
        t_ord_us=rng.choice((10_000, 20_000, 20_000)),
        window=rng.choice((2, 4, 8, 20)),
        first_quota=rng.choice((1, 2, 5)),
        ahead_rounds=rng.choice((1, 3, 10)),
        lag_fix=rng.random() < 0.8,
        quota_change=rng.random() < 0.7,
        stagger=rng.random() < 0.5,
        stagger_from=rng.choice((2, 3, 7)),
        stagger_groups=2,
        slow_intervals=4,
        rest_windows=rng.choice((1, 3)),
        silent_intervals=rng.choice((8, 12)),
        fail_intervals=rng.choice((20, 40)),
        free_will=rng.random() < 0.12,
        adaptive=rng.random() < 0.4,
    )
