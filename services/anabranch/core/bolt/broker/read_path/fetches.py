"""Extents from the cache or from the store: one GET for all who want the same bytes.

A whole extent is fetched though a part of it be asked for: its neighbours are what is read next.
What comes from the store is verified before anybody sees it.
"""

from collections.abc import Callable, Sequence

from anabranch.core.bolt.broker.context import BrokerContext
from anabranch.core.bolt.broker.read_path.cache import Extent, ExtentCache, ExtentKey, key_of
from anabranch.core.bolt.broker.read_path.gets import Flight, Line, flights
from anabranch.core.bolt.protocol.queries import Slice
from anabranch.core.errors import AnabranchError, Damage, Mistake
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Buffer, GetFailed, GetObject, ObjectRead, Token
from anabranch.core.records.batch import split, verify
from anabranch.core.types import NEVER, LogId

CACHE_PART = 16
"""What is read ahead takes so small a part of the cache, so that it is still there when asked for.
"""

GET_ATTEMPTS_MAX = 4
BACKOFF_MS = 50
"""Before the second attempt; doubled before each further one."""

Fetched = Callable[[list[Extent] | Refused], None]
"""Refused if the store doesn't answer; what is damaged is in the extents."""


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

    def __init__(self, context: BrokerContext, cache: ExtentCache) -> None:
        self._limits = context.limits
        self._cluster = context.cluster
        self._cache = cache
        self._outbox = context.outbox
        self._alarms = context.alarms
        self._line = Line(context.limits.gets_in_flight_max)
        self.ahead_bytes = min(
            context.limits.read_ahead_bytes, context.limits.cache_bytes // CACHE_PART
        )
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
        extents = self._parse(flight, event.content)
        assert len(extents) == len(flight.keys), "each key is of an extent"
        if any(extent.holes for extent in extents):
            self._outbox.counters.gets_damaged += 1
            if not flight.damaged:
                # Bytes that were spoilt on their way are whole when they come again.
                flight.damaged = True
                self._again(flight)
                return
        self._outbox.counters.gets_bytes += len(event.content)
        self._outbox.usage.read([(self._origins.pop(key), key[2]) for key in flight.keys])
        for key, extent in zip(flight.keys, extents, strict=True):
            wants = self._wanted.pop(key)
            if not extent.holes:
                if not wants or not all(want.passing for want in wants):
                    self._cache.put(key, extent)
                for want in wants:
                    self._cache.get(key, want.pieces[key].skip, passing=want.passing)
            self._give(wants, key, extent)

    def failed(self, event: GetFailed) -> None:
        """Try again unless the store has said that it will never help."""
        flight = self._landed(event.token)
        if isinstance(event.error, Damage):
            if len(flight.keys) > 1:
                # An object that was cut short may still hold some of them.
                self._line.join([Flight(flight.object, [key]) for key in flight.keys])
                self._depart()
                return
            for key in flight.keys:
                del self._origins[key]
                self._give(self._wanted.pop(key), key, Extent.unreadable(_why(event.error)))
            return
        if isinstance(event.error, Mistake) or flight.attempts >= GET_ATTEMPTS_MAX:
            self._lost(flight, event.error)
            return
        delay_ms = BACKOFF_MS << (flight.attempts - 1)
        self._alarms.after(delay_ms, lambda: self._again(flight))

    def _give(self, wants: Sequence[_Want], key: ExtentKey, extent: Extent) -> None:
        for want in wants:
            want.extents[key] = extent
            want.missing -= 1
            assert want.missing >= 0, "it was given already"
            self._settle(want)

    def _settle(self, want: _Want) -> None:
        """Answer if nothing is missing any more."""
        if not want.missing:
            slices = want.slices
            want.answer([_checked(piece, want.extents[key_of(piece)]) for piece in slices])

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
            assert length > 0, "an extent has a byte at least"
            get = GetObject(self._token, flight.object, flight.start, length)
            self._outbox.effects.append(get)

    def _landed(self, token: Token) -> Flight:
        assert token in self._flights, "each GET ends once"
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
        if len(content) != flight.end - flight.start:
            reason = f"{len(content)} bytes came where {flight.end - flight.start} begin"
            damaged = Extent.unreadable(f"{reason} at byte {flight.start}")
            return [damaged for _ in flight.keys]
        view = memoryview(content)
        extents: list[Extent] = []
        for _, offset, length in flight.keys:
            start = offset - flight.start
            extents.append(_verified(view[start : start + length], offset))
        return extents


def _verified(content: memoryview, offset: int) -> Extent:
    """The extent in these bytes, which lie at this offset of the object.

    The header of a damaged batch is believed where it says how many records the batch has twice
    over, and how long it is leads to another batch. If not, nothing behind it has a sure place.
    """
    batches: list[Buffer] = []
    upto: list[int] = []
    holes: list[tuple[int, int]] = []
    reason = ""
    records = end = 0
    try:
        for at, length, header in split(content):
            end = at
            batch = content[at : at + length]
            try:
                verify(batch, "")
            except Mistake as fault:
                reason = reason or f"the batch at byte {offset + at}: {_why(fault)}"
                if header.count < 1 or header.last_offset_delta != header.count - 1:
                    raise
                holes.append((records, records + header.count))
            batches.append(batch)
            records += header.count
            end = at + length
            upto.append(records)
    except Mistake as fault:
        reason = reason or f"the batch at byte {offset + end}: {_why(fault)}"
        holes.append((records, NEVER))
    assert bool(holes) == bool(reason), "what is missing has its reason"
    extent = Extent(batches, upto, len(content))
    extent.holes, extent.reason = holes, reason
    return extent


def _checked(piece: Slice, extent: Extent) -> Extent:
    """The extent, if it holds as many records as its slice names; damage makes the count doubtful.

    It may hold more: a severed fork that lost its parent uses only a part.
    """
    assert piece.skip >= 0
    assert piece.count > 0, "a slice has a record at least"
    held = extent.upto[-1] if extent.upto else 0
    named = piece.skip + piece.count
    if held >= named:
        return extent
    doubtful = Extent(extent.batches, extent.upto, extent.bytes)
    since = extent.holes[0][0] if extent.holes else held
    doubtful.holes = ((since, NEVER),)
    doubtful.reason = extent.reason or (
        f"it holds {held} records at byte {piece.offset} where {named} are named"
    )
    return doubtful


def _why(error: AnabranchError) -> str:
    return str(error.facts.get("reason") or error.message)
