"""What programs saw of a lazily ordered log, judged by the promises of LazyLog 1 and 3.3 alone.

It shares no code with `core/history/lazy.py`: a rule that one of them has wrong, the other may have
right. It also knows requests, which several programs repeat under one id, and refusals that say
that an append certainly isn't in the log.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

NEVER = 1 << 62


@dataclass
class Try:
    """One call that appends a batch. Times are stamps that only grow."""

    values: list[bytes]
    invoked: int
    request: str = ""
    returned: int = NEVER
    acknowledged: bool = False
    refused: str = ""
    """Why it certainly isn't in the log; empty if nobody knows, or if it is."""


class Append(NamedTuple):
    """All tries of one request, or the only try of another batch."""

    values: list[bytes]
    invoked: int
    returned: int
    acknowledged: bool
    refused: bool


@dataclass
class History:
    tries: list[Try] = field(default_factory=list[Try])
    receipts: list[tuple[Try, int]] = field(default_factory=list[tuple[Try, int]])
    """The position that a program was told of its batch."""
    tails: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    """When each was asked and answered, and what it was."""
    log: dict[int, bytes | None] = field(default_factory=dict[int, bytes | None])
    """All of it in the end, by position; None: a no-op."""

    def appends(self) -> list[Append]:
        groups: dict[object, list[Try]] = {}
        for each in self.tries:
            groups.setdefault(each.request or id(each), []).append(each)
        return [
            Append(
                tries[0].values,
                min(each.invoked for each in tries),
                min((each.returned for each in tries if each.acknowledged), default=NEVER),
                any(each.acknowledged for each in tries),
                all(each.refused for each in tries),
            )
            for tries in groups.values()
        ]


def faults_of(history: History) -> list[str]:
    """Every promise that was broken."""
    places: dict[bytes, int] = {}
    faults: list[str] = []
    for position, value in sorted(history.log.items()):
        if value is not None and places.setdefault(value, position) != position:
            faults.append(f"{value!r} is at {places[value]} and at {position}")
    appends = history.appends()
    faults += [
        f"there is a hole at {at}" for at in range(len(history.log)) if at not in history.log
    ]
    faults += [f"nobody sent {each!r}" for each in places.keys() - _sent(appends)]
    faults += _presence(appends, places)
    faults += _real_time(appends, places)
    faults += _tails(history, appends)
    for each, position in history.receipts:
        if [history.log.get(position + nth) for nth in range(len(each.values))] != each.values:
            faults.append(f"{each.values} has a receipt for {position}, where it isn't")
    return faults


def _sent(appends: list[Append]) -> set[bytes]:
    return {value for append in appends for value in append.values}


def _presence(appends: list[Append], places: dict[bytes, int]) -> Iterator[str]:
    """What was acknowledged is there, what was refused isn't, and a batch is there as a whole."""
    for append in appends:
        found = [places.get(value) for value in append.values]
        firsts = {at - nth if at is not None else None for nth, at in enumerate(found)}
        if len(firsts) > 1:
            yield f"the batch {append.values} is at {found}"
        if append.acknowledged and None in firsts:
            yield f"{append.values} was acknowledged, and is at {found}"
        if append.refused and firsts != {None}:
            yield f"{append.values} was refused, and is at {found}"


def _real_time(appends: list[Append], places: dict[bytes, int]) -> Iterator[str]:
    """Nothing stands before what had been acknowledged when it was first sent."""
    placed = [(places[each.values[0]], each) for each in appends if each.values[0] in places]
    earliest = NEVER
    for position, append in sorted(placed, key=lambda place: place[0], reverse=True):
        if earliest < append.invoked:
            yield f"{append.values} at {position} was sent after something behind it was there"
        earliest = min(earliest, append.returned)


def _tails(history: History, appends: list[Append]) -> Iterator[str]:
    """A tail counts what was acknowledged before, and nothing that nobody had sent."""
    for asked, answered, tail in history.tails:
        least = sum(len(each.values) for each in appends if each.returned < asked)
        most = sum(len(each.values) for each in appends if each.invoked < answered)
        if not least <= tail <= most:
            yield f"the tail was {tail}, {least} were acknowledged and {most} sent"
