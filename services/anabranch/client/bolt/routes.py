"""Which broker serves which log best, as far as a client has been told, and when to ask again.

Any broker can serve any log (AgileLog, 5.1): a route that is wrong costs a cold cache, and nothing
else. So routes are learned on the way, from whatever describes a log, and looked up again only when
they are old and used, or when what they lead to doesn't answer.
"""

from collections.abc import Callable, Iterable

from anabranch.client.bolt.routing import BrokerLine
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.bolt.protocol.messages import ClientMessage, ServerMessage
from anabranch.core.bolt.protocol.queries import BrokerSeat
from anabranch.core.bolt.state.placement import READY
from anabranch.core.errors import AnabranchError
from anabranch.core.types import MS, LogId, Milliseconds, Nanoseconds

ROUTES_MAX = 65_536
"""Logs whose brokers are remembered; past it the oldest are forgotten, and learned again."""


class Route:
    """Where a log is served; empty if nobody said, or by whoever is asked."""

    __slots__ = ("address", "due")

    def __init__(self, address: str, due: Nanoseconds) -> None:
        self.address = address
        self.due = due
        """From then on whoever uses it has it looked up again."""


class Routes:
    """Of one session."""

    def __init__(self, addresses: tuple[str, ...], route_ms: Milliseconds) -> None:
        self.spread = len(addresses) > 1
        """Are there brokers with addresses of their own? One process that is all there is has
        none, and nothing is ever looked up."""
        self._given = addresses
        self._pool: tuple[str, ...] = ()
        self._pool_due: Nanoseconds = 0
        self._unrest_until: Nanoseconds = 0
        self._route_ns = route_ms * MS
        self._routes: dict[LogId, Route] = {}

    @property
    def addresses(self) -> Iterable[str]:
        """Where a broker can be expected, likely ones first."""
        return dict.fromkeys((*self._given, *self._pool))

    def address(self, log: LogId) -> str:
        route = self._routes.get(log)
        return route.address if route else ""

    def learn(self, description: Description, now: Nanoseconds, again_ms: Milliseconds) -> bool:
        """True if the log was thought to be served elsewhere."""
        address = description.address
        if address:
            self.spread = True
        elif not self.spread:
            return False
        due = now + again_ms * MS
        route = self._routes.get(description.id)
        if route is None:
            self._add(description.id, Route(address, due))
            return False
        moved = route.address != address
        route.address, route.due = address, due
        return moved

    def joined(self, seats: Iterable[BrokerSeat], now: Nanoseconds, again_ms: Milliseconds) -> None:
        """These are the brokers of the pool; not long after one was lost, others may come."""
        self._pool = tuple(seat.address for seat in seats if seat.state == READY and seat.address)
        self._pool_due = now + (again_ms * MS if now < self._unrest_until else self._route_ns)

    def hasten(self, address: str, due: Nanoseconds) -> None:
        """What leads there doesn't work: look it up again from then on, and who else there is."""
        self._unrest_until = due + self._route_ns
        self._pool_due = min(self._pool_due, due)
        for route in self._routes.values():
            if route.address == address:
                route.due = min(route.due, due)

    def look_up(self, log: LogId, now: Nanoseconds, patience_ms: Milliseconds) -> bool:
        """Should it be asked who serves this log? If so, not again before `patience_ms`."""
        route = self._routes.get(log)
        if route is None:
            self._add(log, Route("", now + patience_ms * MS))
            return True
        if now < route.due:
            return False
        route.due = now + patience_ms * MS
        return True

    def look_up_pool(self, now: Nanoseconds, patience_ms: Milliseconds) -> bool:
        if now < self._pool_due:
            return False
        self._pool_due = now + patience_ms * MS
        return True

    def _add(self, log: LogId, route: Route) -> None:
        if len(self._routes) >= ROUTES_MAX:
            del self._routes[next(iter(self._routes))]
        self._routes[log] = route


class Inquiry:
    """A question of the session's own; one that isn't answered is asked again when it is due."""

    def __init__(
        self, line: BrokerLine, message: ClientMessage, told: Callable[[ServerMessage], None]
    ) -> None:
        self._line = line
        self._told = told
        self._request = line.ask(self, message)

    def heard(self, message: ServerMessage | AnabranchError) -> None:
        self._line.unheard(self._request)
        if not isinstance(message, AnabranchError):
            self._told(message)

    def lost(self, *, sent: bool) -> None:
        """It is asked again when it is due."""
