"""Get the bytes of portions from the store, and prove them: what an executor does of an audit."""

from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from anabranch import ScanPlan
from anabranch.core.records.objects import TRAILER_BYTES, ObjectName
from anabranch.errors import AnabranchError
from anabranch_spark.audit.inspection import (
    Inspected,
    footer_damage,
    footer_length,
    inspect,
    missing,
)
from anabranch_spark.audit.location import Weighed
from anabranch_spark.audit.portions import Portion
from anabranch_spark.audit.shares import Found, Piece
from anabranch_spark.audit.tally import Tally, merged, of_damage, of_obstacle, of_portion
from anabranch_spark.source.cuts import groups
from anabranch_spark.source.fetch import Content, CutShort, Fetcher, ObjectGone, UrlRefused

SIGNED_TOGETHER = 256
"""Portions that are signed with one request."""
SIGNED_BYTES = 32 << 20
"""Bytes of them, unless it is one."""


class _Bytes(NamedTuple):
    """A portion with its bytes, or why there are none."""

    portion: Portion
    url: str
    content: Content
    fault: ObjectGone | UrlRefused | CutShort | None


class Reader:
    """Reads one piece after the other."""

    def __init__(self, cluster: str, fetcher: Fetcher) -> None:
        self._cluster = cluster
        self._fetcher = fetcher

    def read(self, piece: Piece, plan: ScanPlan) -> Found:
        """Everything that can be found out about the piece; where the service or the store doesn't
        answer, that is the finding.
        """
        tallies: list[Tally] = []
        weighed: list[Weighed] = []
        objects: dict[int, tuple[str, list[Portion]]] = {}
        try:
            for each in self._bytes(plan, piece.portions):
                found = self._proved(plan, each)
                if isinstance(found, Tally):
                    tallies.append(found)
                    continue
                inspected, again = found
                tallies.append(of_portion(each.portion, inspected, read_again=again))
                weighed.append(Weighed(each.portion.position, inspected.sum, inspected.summed))
                seen = objects.setdefault(each.portion.place.object, (each.url, []))
                seen[1].append(each.portion)
            tallies += [self._footer(url, portions) for url, portions in objects.values()]
        except (AnabranchError, OSError) as error:
            tallies.append(of_obstacle(f"a task stopped: {error}"))
        return Found(piece.log, merged(tallies), weighed)

    def _proved(self, plan: ScanPlan, read: _Bytes) -> Tally | tuple[Inspected, int]:
        """Damage is only what two reads agree on: what was damaged on its way isn't the log's."""
        name = self._name(read.portion)
        if read.fault is None:
            inspected = inspect(read.portion, read.content, name)
            if not inspected.damage:
                return inspected, 0
        again = next(self._bytes(plan, [read.portion]))
        match again.fault:
            case None:
                return inspect(read.portion, again.content, name), 1
            case ObjectGone():
                return of_damage([missing(read.portion, name, str(again.fault))])
            case CutShort():
                return of_damage([missing(read.portion, name, str(again.fault), short=True)])
            case UrlRefused():
                return of_obstacle(f"object {name}: {again.fault}")

    def _bytes(self, plan: ScanPlan, portions: Sequence[Portion]) -> Iterator[_Bytes]:
        """Each portion with its bytes, in order."""
        waiting = deque(portions)
        places = [each.place for each in portions]
        for group in groups(places, slices_max=SIGNED_TOGETHER, bytes_max=SIGNED_BYTES):
            for place, content, fault in self._fetcher.each(plan.sign(group)):
                end = place.offset + place.length
                while waiting and _lies_in(waiting[0], place.object, place.offset, end):
                    portion = waiting.popleft()
                    at = portion.place.offset - place.offset
                    part = content[at : at + portion.place.length]
                    yield _Bytes(portion, place.url, part, fault)
        assert not waiting, "every portion is in a range that was signed"

    def _footer(self, url: str, portions: Sequence[Portion]) -> Tally:
        """Of an object in a folder. Elsewhere URLs are signed for a log's bytes alone."""
        parts = urlsplit(url)
        if parts.scheme != "file":
            return Tally()
        name = self._name(portions[0])
        try:
            size = Path(unquote(parts.path)).stat().st_size
        except FileNotFoundError:
            return of_damage([missing(portions[0], name, "it was there a moment ago")])
        trailer = min(size, TRAILER_BYTES)
        tail = self._fetcher.get(_End(url, size - trailer, trailer))
        length = footer_length(tail.content, size, name)
        tail = self._fetcher.get(_End(url, size - length, length))
        damage = footer_damage(tail.content, size, self._cluster, portions, name)
        return merged([Tally(footers=1), of_damage(damage)])

    def _name(self, portion: Portion) -> str:
        return str(ObjectName.of(self._cluster, portion.place.object))


class _End(NamedTuple):
    """The end of an object in a folder."""

    url: str
    offset: int
    length: int


def _lies_in(portion: Portion, object: int, offset: int, end: int) -> bool:
    place = portion.place
    return place.object == object and offset <= place.offset and place.offset + place.length <= end
