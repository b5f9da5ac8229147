"""GETs, on their way and in line: so many at once, and each request's in its turn."""

from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from operator import itemgetter

from anabranch.core.bolt.broker.read_path.cache import ExtentKey
from anabranch.core.types import ObjectId


class Flight:
    """One GET, and the extents that it brings."""

    __slots__ = ("attempts", "damaged", "end", "keys", "object", "start")

    def __init__(self, object: ObjectId, keys: list[ExtentKey]) -> None:
        assert keys, "nobody wants anything"
        self.object = object
        self.keys = keys
        self.start = keys[0][1]
        self.end = max(offset + length for _, offset, length in keys)
        self.attempts = 0
        self.damaged = False
        """What came once already was not what had been written."""


def flights(keys: Sequence[ExtentKey], gap_bytes_max: int) -> Iterator[Flight]:
    """As few GETs as bring these extents without much that nobody wants."""
    assert gap_bytes_max >= 0
    together: list[ExtentKey] = []
    end = 0
    for key in sorted(keys, key=itemgetter(0, 1)):
        object, offset, length = key
        if together and (together[0][0] != object or offset > end + gap_bytes_max):
            yield Flight(together[0][0], together)
            together = []
        end = max(end, offset + length) if together else offset + length
        together.append(key)
    if together:
        yield Flight(together[0][0], together)


class Line:
    """Flights that wait for room. Requests take turns, so that one of many GETs delays one of few
    by no more than a GET.
    """

    def __init__(self, in_flight_max: int) -> None:
        assert in_flight_max > 0, "nothing would ever depart"
        self._in_flight_max = in_flight_max
        self._waiting: OrderedDict[int, deque[Flight]] = OrderedDict()
        """By request, whose turn it is first."""
        self._requests = 0
        self._length = 0
        self.in_flight = 0

    def __len__(self) -> int:
        return self._length

    def join(self, waiting: Sequence[Flight]) -> None:
        """Those of one request, the first of which is wanted first."""
        if waiting:
            self._requests += 1
            self._waiting[self._requests] = deque(waiting)
            self._length += len(waiting)

    def depart(self) -> Flight | None:
        """Whose turn it is, if there is room: whoever gets it says `land` when it is over."""
        if not self._waiting or self.in_flight >= self._in_flight_max:
            return None
        request, own = self._waiting.popitem(last=False)
        flight = own.popleft()
        if own:
            self._waiting[request] = own
        self._length -= 1
        assert self._length >= 0
        self.in_flight += 1
        return flight

    def land(self) -> None:
        assert self.in_flight > 0, "nothing is in flight"
        self.in_flight -= 1
