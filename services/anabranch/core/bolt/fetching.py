"""Extents from the cache or from the store: one GET for all who want the same bytes.

A whole extent is fetched though a part of it be asked for: its neighbours are what is read next.
What comes from the store is verified before anybody sees it.
"""

from collections.abc import Callable, Sequence

from anabranch.core.bolt.alarms import Alarms
from anabranch.core.bolt.cache import Extent, ExtentCache, ExtentKey, key_of
from anabranch.core.bolt.commands import Refused
from anabranch.core.bolt.flights import Flight, Line, flights
from anabranch.core.bolt.outbox import Outbox
from anabranch.core.bolt.queries import Slice
from anabranch.core.errors import AnabranchError, CorruptObject, Damage, Mistake
from anabranch.core.limits import Limits
from anabranch.core.machine import Buffer, GetFailed, GetObject, ObjectRead, Token
from anabranch.core.records.batch import split, verify
from anabranch.core.records.objects import ObjectName
from anabranch.core.types import LogId

CACHE_PART = 16
"""What is read ahead takes so small a part of the cache, so that it is still there when asked for.
"""

GET_ATTEMPTS_MAX = 4
BACKOFF_MS = 50
"""Before the second attempt; doubled before each further one."""

Fetched = Callable[[list[Extent] | Refused], None]


class _Want:
    """One reader's extents, some of them still to come."""

    __slots__ = ("extents", "missing", "passing", "pieces", "slices", "then")

    def __init__(self, slices: Sequence[Slice], then: Fetched, passing: bool) -> None:
        self.slices = slices
        self.passing = passing
        self.pieces: dict[ExtentKey, Slice] = {}
        """Of each extent, where its reading begins."""
        for piece in slices:
            self.pieces.setdefault(key_of(piece), piece)
        self.extents: dict[ExtentKey, Extent] = {}
        self.missing = 0
        self.then: Fetched | None = then

    def answer(self, answer: list[Extent] | Refused) -> None:
        then, self.then = self.then, None
        if then is not None:
            then(answer)


class Fetching:
    """Who wants which extents, and the GETs that bring them."""

    def __init__(
        self, limits: Limits, cluster: str, cache: ExtentCache, outbox: Outbox, alarms: Alarms
    ) -> None:
        self._limits = limits
        self._cluster = cluster
        self._cache = cache
        self._outbox = outbox
        self._alarms = alarms
        self._line = Line(limits.gets_in_flight_max)
        self.ahead_bytes = min(limits.read_ahead_bytes, limits.cache_bytes // CACHE_PART)
        """Worth asking the metadata about, for whoever goes through a log."""
        self._wanted: dict[ExtentKey, list[_Want]] = {}
        self._origins: dict[ExtentKey, LogId] = {}
        """To which log the wanted ones were written."""
        self._flights: dict[Token, Flight] = {}
        self._token: Token = 0

    def fetch(self, slices: Sequence[Slice], then: Fetched, *, passing: bool = False) -> None:
        """Call back with the extents of these slices, in order; at once if all are at hand.

        `passing`: nobody will read them again soon, so nothing leaves the cache for them.
        """
        want = _Want(slices, then, passing)
        absent: list[ExtentKey] = []
        for key, piece in want.pieces.items():
            extent = self._cache.get(key, piece.skip, passing=passing)
            if extent is not None:
                want.extents[key] = extent
                continue
            want.missing += 1
            if key in self._wanted:
                self._wanted[key].append(want)
            else:
                self._wanted[key] = [want]
                self._origins[key] = piece.origin
                absent.append(key)
        self._outbox.counters.cache_hits += len(want.extents)
        self._outbox.counters.cache_misses += want.missing
        self._get(absent)
        self._settle(want)

    def read_ahead(self, slices: Sequence[Slice]) -> None:
        """These will be asked for next: bring them meanwhile, unless others wait for theirs."""
        absent: list[ExtentKey] = []
        for piece in slices:
            if self._line or len(absent) >= self._limits.gets_in_flight_max:
                break
            key = key_of(piece)
            if key not in self._cache and key not in self._wanted:
                self._wanted[key] = []
                self._origins[key] = piece.origin
                absent.append(key)
        self._outbox.counters.extents_read_ahead += len(absent)
        self._get(absent)

    def arrived(self, event: ObjectRead) -> None:
        flight = self._landed(event.token)
        try:
            extents = self._parse(flight, event.content)
        except Damage as damage:
            self._outbox.counters.gets_damaged += 1
            if flight.damaged:
                self._lost(flight, damage)
                return
            # Bytes that were spoilt on their way are whole when they come again.
            flight.damaged = True
            self._again(flight)
            return
        self._outbox.counters.gets_bytes += len(event.content)
        self._outbox.usage.read([(self._origins.pop(key), key[2]) for key in flight.keys])
        for key, extent in zip(flight.keys, extents, strict=True):
            wants = self._wanted.pop(key)
            if not wants or not all(want.passing for want in wants):
                self._cache.put(key, extent)
            for want in wants:
                self._cache.get(key, want.pieces[key].skip, passing=want.passing)
                want.extents[key] = extent
                want.missing -= 1
                self._settle(want)

    def failed(self, event: GetFailed) -> None:
        """Try again unless the store has said that it will never help."""
        flight = self._landed(event.token)
        hopeless = isinstance(event.error, Damage | Mistake)
        if hopeless or flight.attempts >= GET_ATTEMPTS_MAX:
            self._lost(flight, event.error)
            return
        delay_ms = BACKOFF_MS << (flight.attempts - 1)
        self._alarms.after(delay_ms, lambda: self._again(flight))

    def _settle(self, want: _Want) -> None:
        """Answer if nothing is missing any more."""
        if want.missing:
            return
        extents = [want.extents[key_of(piece)] for piece in want.slices]
        for piece, extent in zip(want.slices, extents, strict=True):
            if extent.upto[-1] < piece.skip + piece.count:
                want.answer(Refused.of(self._too_short(piece, extent)))
                return
        want.answer(extents)

    def _too_short(self, piece: Slice, extent: Extent) -> CorruptObject:
        held, named = extent.upto[-1], piece.skip + piece.count
        reason = f"it holds {held} records at byte {piece.offset} where {named} are named"
        return CorruptObject(str(ObjectName.of(self._cluster, piece.object)), reason)

    def _get(self, keys: Sequence[ExtentKey]) -> None:
        self._line.join([*flights(keys, self._limits.read_gap_bytes_max)])
        self._depart()

    def _again(self, flight: Flight) -> None:
        self._line.join([flight])
        self._depart()

    def _depart(self) -> None:
        """As many GETs as there is room for."""
        while (flight := self._line.depart()) is not None:
            flight.attempts += 1
            self._token += 1
            self._flights[self._token] = flight
            self._outbox.counters.gets += 1
            length = flight.end - flight.start
            get = GetObject(self._token, flight.object, flight.start, length)
            self._outbox.effects.append(get)

    def _landed(self, token: Token) -> Flight:
        self._line.land()
        self._depart()
        return self._flights.pop(token)

    def _lost(self, flight: Flight, error: AnabranchError) -> None:
        refused = Refused.of(error)
        for key in flight.keys:
            del self._origins[key]
            for want in self._wanted.pop(key):
                want.answer(refused)

    def _parse(self, flight: Flight, content: Buffer) -> list[Extent]:
        name = str(ObjectName.of(self._cluster, flight.object))
        if len(content) != flight.end - flight.start:
            reason = f"{len(content)} bytes came where {flight.end - flight.start} begin"
            raise CorruptObject(name, f"{reason} at byte {flight.start}")
        view = memoryview(content)
        extents: list[Extent] = []
        for _, offset, length in flight.keys:
            start = offset - flight.start
            extents.append(_verified(view[start : start + length], name, offset))
        return extents


def _verified(content: memoryview, name: str, offset: int) -> Extent:
    """The extent in these bytes, which lie at this offset of the object."""
    batches: list[Buffer] = []
    upto: list[int] = []
    records = end = 0
    try:
        for at, length, header in split(content):
            batch = content[at : at + length]
            verify(batch, "")
            end = at + length
            batches.append(batch)
            records += header.count
            upto.append(records)
    except Mistake as fault:
        reason = fault.facts.get("reason", fault.message)
        raise CorruptObject(name, f"the batch at byte {offset + end}: {reason}") from fault
    return Extent(batches, upto, len(content))
