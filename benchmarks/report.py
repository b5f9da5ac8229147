"""What a benchmark found: rows with their bars, one JSON file each."""

from collections.abc import Sequence
from math import isfinite, nan
from pathlib import Path
from statistics import median

import msgspec

from benchmarks.machine import Machine

RESULTS = Path(__file__).parent / "results"
SCRATCH = Path(__file__).parent / "scratch"
"""Where servers keep their data meanwhile, and where a smoke run writes what it found."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One figure, what it is compared with, and the bar that one of the two must clear."""

    what: str
    value: float
    unit: str
    against: str | None = None
    """What `ratio` is a ratio to."""
    ratio: float | None = None
    bar: str | None = None
    """Of the value if it names the unit, of the ratio if it ends in x; none: shown only."""
    holds: bool | None = None
    spread: tuple[float, float] | None = None
    """Lowest and highest round of the value, or of the ratio if the bar is the ratio's."""

    @property
    def known(self) -> bool:
        """There was something to measure in every round."""
        numbers = (self.value, self.ratio or 0.0, *(self.spread or ()))
        return all(map(isfinite, numbers))


class Result(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    machine: Machine
    commit: str
    rows: list[Row]
    notes: list[str] = []
    """How it was taken, where that isn't plain."""


class Line(msgspec.Struct, frozen=True):
    """One line of a chart; with words in place of numbers it is a set of bars."""

    label: str
    points: Sequence[tuple[float | str, float]]


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    title: str
    x: str
    y: str
    lines: list[Line]
    log_x: bool = False
    log_y: bool = False


class Found(msgspec.Struct, frozen=True):
    rows: list[Row]
    charts: list[Chart]
    notes: list[str] = []


def row(
    what: str,
    rounds: Sequence[float] | float,
    unit: str,
    *,
    at_most: float | None = None,
    at_least: float | None = None,
) -> Row:
    """A figure, the median of its rounds, with a bar of its own or with none."""
    values = _all(rounds)
    value = median(values)
    bar, holds = _judged(value, at_most, at_least, f" {unit}")
    spread = (_round(min(values)), _round(max(values))) if len(values) > 1 else None
    return Row(what=what, value=_round(value), unit=unit, bar=bar, holds=holds, spread=spread)


def versus(
    what: str,
    rounds: Sequence[float] | float,
    unit: str,
    against: str,
    others: Sequence[float] | float,
    *,
    at_most: float | None = None,
    at_least: float | None = None,
) -> Row:
    """A figure over another of the same rounds; the ratio is the median of each round's."""
    values, bases = _all(rounds), _all(others)
    ratios = [value / base if base else nan for value, base in zip(values, bases, strict=True)]
    ratio = median(ratios)
    bar, holds = _judged(ratio, at_most, at_least, "x")
    spread = (_round(min(ratios)), _round(max(ratios))) if len(ratios) > 1 else None
    return Row(
        what=what,
        value=_round(median(values)),
        unit=unit,
        against=against,
        ratio=_round(ratio),
        bar=bar,
        holds=holds,
        spread=spread,
    )


def save(result: Result, directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{result.name}.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n")
    return path


def said(row: Row) -> str:
    """A row as one line."""
    ratio = "" if row.ratio is None else f"{row.ratio:,g}x of {row.against}"
    bar = "" if row.bar is None else f"{row.bar} {'holds' if row.holds else 'DOES NOT HOLD'}"
    spread = "" if row.spread is None else f"[{row.spread[0]:,g} .. {row.spread[1]:,g}]"
    return (
        f"  {row.what:<66} {row.value:>13,.6g} {row.unit:<10} {ratio:<34} {bar} {spread}".rstrip()
    )


def _judged(
    figure: float, at_most: float | None, at_least: float | None, unit: str
) -> tuple[str | None, bool | None]:
    assert at_most is None or at_least is None, "a bar is one number"
    if at_most is not None:
        return f"<= {at_most:,g}{unit}", figure <= at_most
    if at_least is not None:
        return f">= {at_least:,g}{unit}", figure >= at_least
    return None, None


def _all(rounds: Sequence[float] | float) -> Sequence[float]:
    return rounds if isinstance(rounds, Sequence) else [rounds]


def _round(value: float) -> float:
    """Five digits say more than any of these figures knows."""
    return float(f"{value:.5g}")
