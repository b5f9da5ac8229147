"""One simulated run: machines under load and faults, then healing, after which all must come right.

What is particular to an engine is in its plug-in: machines, workload, faults and checks.
"""

import traceback
from collections.abc import Callable
from typing import Protocol

import msgspec

from anabranch.core.errors import AnabranchError
from anabranch.core.types import Nanoseconds
from anabranch_sim.world.events import World
from anabranch_sim.world.faults import Faults

Tell = Callable[[str], None]
"""Takes one line of the trace."""

BUGS = (
    AnabranchError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What a machine or a check raises when it is wrong: a finding like any other."""


class Report(msgspec.Struct):
    """The outcome of one seed; empty `violations` is what we want."""

    seed: int
    options: str
    violations: list[str] = msgspec.field(default_factory=list[str])
    counts: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    """How much was done; first what the load consists of."""
    crash: str = ""
    """The trace of an exception that stopped the run."""
    crashed_in: str = ""
    """The file that raised it."""

    @property
    def failed(self) -> bool:
        return bool(self.violations)

    @property
    def done(self) -> int:
        """How much of the load was done."""
        return next(iter(self.counts.values()))


class Plugin(Protocol):
    """What a run of one engine consists of."""

    world: World
    chaos: Nanoseconds
    """How long load and faults last, at the most."""

    @property
    def faults(self) -> Faults: ...

    @property
    def options(self) -> object:
        """Printed when a seed fails; nothing else but the seed is needed to run it again."""
        ...

    def start(self) -> None:
        """Start machines and load."""
        ...

    def is_done(self) -> bool:
        """True when the load has ended early, or when more of it would show nothing new."""
        ...

    def converge(self) -> bool:
        """After the faults: wait until everything has come right; False if it doesn't in time."""
        ...

    def check(self) -> None:
        """Judge what the run has left."""
        ...

    def violations(self) -> list[str]:
        """Every rule that was broken, at any step or in the end."""
        ...

    def counts(self) -> dict[str, int]: ...


class Simulation:
    """One seed of one engine."""

    def __init__(self, plugin: Plugin) -> None:
        self.plugin = plugin
        self.world = plugin.world
        self.report = Report(self.world.seed, str(plugin.options))

    def run(self) -> Report:
        report, plugin = self.report, self.plugin
        try:
            self._play()
        except BUGS as error:
            report.violations.append(f"failed: {type(error).__name__}: {error}")
            report.crash = traceback.format_exc()
            report.crashed_in = traceback.extract_tb(error.__traceback__)[-1].filename
        report.violations.extend(dict.fromkeys(plugin.violations()))
        strikes, events = plugin.faults.strikes, self.world.events
        report.counts = {**plugin.counts(), "strikes": strikes, "events": events}
        return report

    def _play(self) -> None:
        plugin, world = self.plugin, self.world
        plugin.start()
        plugin.faults.start()
        world.run(world.now + plugin.chaos, plugin.is_done)
        plugin.faults.heal()
        if plugin.converge():
            plugin.check()
