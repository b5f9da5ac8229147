"""An append on its way, as an asyncio program holds it."""

from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar

from anabranch.client.session.link import Link
from anabranch.client.session.pledge import Promise
from anabranch.core.errors import AnabranchError

P = TypeVar("P", bound=Promise[Any])
R = TypeVar("R")


def result(link: Link[Any, Any], pledge: P, index: int, placed: Callable[[P, int], R]) -> R:
    """What became of one record of this pledge, which is settled."""
    outcome = pledge.outcome
    assert outcome is not None, "only one that is done has a result"
    if isinstance(outcome, AnabranchError):
        link.heeded(outcome)
        raise outcome
    return placed(pledge, index)


class Pending(Generic[P, R]):
    """Await it, or look whether it is done."""

    __slots__ = ("_index", "_link", "_placed", "_pledge")

    def __init__(
        self, link: Link[Any, Any], pledge: P, index: int, placed: Callable[[P, int], R]
    ) -> None:
        """`placed`: where the record with this index is, of a pledge that was acknowledged."""
        self._link, self._pledge, self._index, self._placed = link, pledge, index, placed

    def __await__(self) -> Generator[object, None, R]:
        if self._pledge.outcome is None:
            yield from self._link.settled(self._pledge).__await__()
        return self.result()

    @property
    def done(self) -> bool:
        return self._pledge.outcome is not None

    def result(self) -> R:
        """Of one that is done; raises what became of it, if it wasn't appended."""
        return result(self._link, self._pledge, self._index, self._placed)
