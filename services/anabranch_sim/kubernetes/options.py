"""What a seed decides before anything happens in a simulation of operators."""

from random import Random

from msgspec import Struct

FAULTS = (
    "api",
    "crashes",
    "requests",
    "stale",
    "kills",
    "leaves",
    "lost",
    "nodes",
    "pauses",
    "service",
    "silence",
    "watches",
    "weather",
)
_SALT = 0x0BE8A708
_QUIET = 0.1
"""Of all runs have no fault: where all is well all must come right as well."""
_DEEP_EACH = 10
_LONG_EACH = 20
_BELFAST, _ERWIN, _LAZY = 0.16, 0.24, 0.32
"""Up to these shares of all runs have a Belfast log, an Erwin log or a lazy front: they take twice
as long as others.
"""
_GATED = 0.3
"""This share of all runs has users who declare forks for gates to judge. Elsewhere gates are seldom
asked: it takes a promotable fork with a gate, the wish, and a fork that lives that long.
"""


class Options(Struct, frozen=True, kw_only=True):
    """Printed when a seed fails; nothing else but the seed is needed to run it again."""

    seed: int
    deep: bool
    """The whole cluster of brokers and members behind the log service, not its state alone."""
    belfast: bool
    """There is a Belfast log as well."""
    erwin: bool
    """There is an Erwin log as well; never beside a Belfast log."""
    lazy: bool
    """There is a Bolt log with lazy appends as well; never beside either of these, nor where the
    whole cluster is.
    """
    gated: bool
    """Users declare forks that gates judge, beside whatever else they declare."""
    acts: int
    """Of people."""
    chaos_s: int
    """How long people and faults are at work."""
    faults: tuple[str, ...]
    look_ms: int
    sweep_s: int
    lease_s: float
    gc_s: int
    calm_s: int
    """How long nothing may be written, after all has been calm for a while."""

    @staticmethod
    def of(seed: int) -> "Options":
        rng = Random(seed ^ _SALT)
        quiet = rng.random() < _QUIET
        faults = () if quiet else tuple(each for each in FAULTS if rng.random() < 0.35)
        deep = seed % _DEEP_EACH == _DEEP_EACH - 1
        return Options(
            seed=seed,
            deep=deep,
            acts=rng.choice((12, 25, 45)),
            chaos_s=rng.choice((60, 180, 400)),
            faults=faults,
            look_ms=rng.choice((2_000, 5_000, 10_000)),
            sweep_s=rng.choice((60, 300)),
            lease_s=rng.choice((15.0, 40.0)),
            gc_s=rng.choice((5, 60)),
            calm_s=3_600 if seed % _LONG_EACH == 0 else 0,
            belfast=(drawn := rng.random()) < _BELFAST,
            erwin=_BELFAST <= drawn < _ERWIN,
            lazy=_ERWIN <= drawn < _LAZY and not deep,
            gated=rng.random() < _GATED,
        )

    def __str__(self) -> str:
        what = "the whole cluster" if self.deep else "the state"
        what += " and a Belfast log" if self.belfast else " and an Erwin log" if self.erwin else ""
        what += " and a lazy front" if self.lazy else ""
        what += " and gated forks" if self.gated else ""
        return (
            f"{what}, {self.acts} acts in {self.chaos_s} s with "
            f"{'+'.join(self.faults) or 'no faults'}; looks each {self.look_ms} ms, lists each "
            f"{self.sweep_s} s, leases of {self.lease_s:g} s"
        )
