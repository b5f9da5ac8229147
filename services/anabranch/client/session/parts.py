"""What a session keeps beyond one connection: calls, producers and subscriptions."""

from typing import TYPE_CHECKING, Any, Protocol

from anabranch.core.errors import AnabranchError
from anabranch.core.types import LogId

if TYPE_CHECKING:
    from anabranch.client.session.commons import Commons


class Part(Protocol):
    """Anything that has business with the service and outlives a connection."""

    def close(self, error: AnabranchError) -> None:
        """The session ends for this reason."""
        ...


class HasLog(Protocol):
    """Business about a log, if it is known by its id."""

    log: LogId | None


class Subscription(Part, HasLog, Protocol):
    """A driver makes one and gives it with Opened."""

    waiter: object
    """The driver's own."""

    @property
    def error(self) -> AnabranchError | None:
        """Why nothing more comes, once what is there has been taken."""
        ...

    def begin(self, commons: "Commons[Any, Any, Any]") -> None:
        """Start to ask."""
        ...

    def taken(self, size: int) -> None:
        """The application has taken something, and has room for so many bytes more."""
        ...

    def leave(self) -> None:
        """The application wants no more."""
        ...
