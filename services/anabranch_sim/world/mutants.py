"""Mutants: an engine's rules broken by hand, one at a time, to see that its simulation notices.

A mutant replaces one named function. What makes it stale is an error and never a success: the
function is gone, it is never called, or the replacement itself crashes.
"""

import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import ModuleType
from typing import Any, cast

import msgspec

from anabranch_sim.world.simulation import Report

Function = Callable[..., Any]
Replace = Callable[[Function], Any]
Place = type | ModuleType | dict[Any, Function]


class StaleMutant(Exception):
    """A mutant doesn't fit the code that it is to break."""


class Mutant(msgspec.Struct, frozen=True):
    """One broken rule: `replace` is given the function that holds it, and returns another."""

    name: str
    owner: Any
    """A class, a module, or a table of functions: see `Place`."""
    key: str | type
    replace: Replace
    also: "Mutant | None" = None
    """What must be broken with it, because it hides the other."""

    def parts(self) -> "Iterator[Mutant]":
        part: Mutant | None = self
        while part is not None:
            yield part
            part = part.also


class Planted:
    """A mutant in place: how often each of its parts was called."""

    def __init__(self, mutant: Mutant) -> None:
        self.calls = {part.name: 0 for part in mutant.parts()}

    @property
    def unreached(self) -> list[str]:
        return [name for name, calls in self.calls.items() if not calls]

    def counted(self, name: str, function: Function) -> Function:
        def call(*args: Any, **more: Any) -> Any:
            self.calls[name] += 1
            return function(*args, **more)

        return call


class Hunt(msgspec.Struct):
    """How a mutant was found, if it was."""

    mutant: str
    runs: int = 0
    seed: int | None = None
    found_by: str = ""
    seconds: float = 0.0
    unreached: list[str] = msgspec.field(default_factory=list[str])
    """Parts of the mutant that no run has called: the mutant proves nothing."""

    @property
    def passed(self) -> bool:
        return self.seed is not None and not self.unreached


@contextmanager
def broken(mutant: Mutant) -> Generator[Planted]:
    """Break the rule for a while."""
    planted = Planted(mutant)
    with ExitStack() as repairs:
        for part in mutant.parts():
            repairs.callback(_plant(part, planted))
        yield planted


def hunt(mutant: Mutant, seeds: Iterable[int], simulate: Callable[[int], Report]) -> Hunt:
    """Run seeds until one fails because of the mutant."""
    began = time.monotonic()
    hunted = Hunt(mutant.name)
    with broken(mutant) as planted:
        for seed in seeds:
            report = simulate(seed)
            hunted.runs += 1
            if "mutants" in report.crashed_in:
                raise StaleMutant(f"{mutant.name} crashes by itself: {report.crash}")
            if report.failed:
                hunted.seed, hunted.found_by = seed, _shortened(report.violations[0])
                break
    hunted.seconds = time.monotonic() - began
    hunted.unreached = planted.unreached
    return hunted


def returning(value: Any) -> Replace:
    """Replace a function by one that always returns this."""

    def replacement(*_args: Any, **_more: Any) -> Any:
        return value

    return lambda _: replacement


def being(*, value: Any) -> Replace:
    """Replace a property by one that always is this."""
    return lambda _: property(lambda _: value)


def _plant(mutant: Mutant, planted: Planted) -> Callable[[], object]:
    """Put it in place, and return how to take it away."""
    owner, key = cast("Place", mutant.owner), mutant.key
    table = cast("dict[Any, Any]", owner if isinstance(owner, dict) else vars(owner))
    if key not in table:
        raise StaleMutant(f"{mutant.name}: {owner} has no {key}: name what holds the rule now")
    original = table[key]
    replacement = mutant.replace(original)
    if isinstance(original, property) != isinstance(replacement, property):
        raise StaleMutant(f"{mutant.name}: {key} of {owner} is a property, or the mutant is one")
    if isinstance(replacement, property):
        assert replacement.fget is not None
        counted: Any = property(planted.counted(mutant.name, replacement.fget))
    else:
        counted = planted.counted(mutant.name, replacement)
    if isinstance(original, staticmethod):
        counted = staticmethod(counted)
    if isinstance(owner, dict):
        table[key] = counted
        return partial(table.__setitem__, key, original)
    assert isinstance(key, str)
    setattr(owner, key, counted)
    return partial(setattr, owner, key, original)


def _shortened(text: str) -> str:
    return text if len(text) <= 90 else f"{text[:87]}..."
