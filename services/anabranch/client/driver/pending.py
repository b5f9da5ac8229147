"""An append on its way, as an asyncio program holds it.

It costs one small object for each record: what all records of a log share is kept in the log.
"""

from collections.abc import Generator
from typing import Any, Generic, Protocol, TypeVar

from anabranch.client.driver.link import Link
from anabranch.client.session.pledge import Promise
from anabranch.core.errors import AnabranchError

P = TypeVar("P", bound=Promise[Any])
P_contra = TypeVar("P_contra", bound=Promise[Any], contravariant=True)
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Target(Protocol[P_contra, R_co]):
    """A log, as its appends see it."""

    @property
    def link(self) -> Link[Any, Any]: ...

    def placed(self, pledge: P_contra, index: int) -> R_co:
        """What the append of this record of an acknowledged batch gives."""
        ...


def result(target: Target[P, R], pledge: P, index: int) -> R:
    """What became of one record of this pledge, which is settled."""
    outcome = pledge.outcome
    assert outcome is not None, "only one that is done has a result"
    if isinstance(outcome, AnabranchError):
        target.link.heeded(outcome)
        raise outcome
    return target.placed(pledge, index)


class Pending(Generic[P, R]):
    """Await it, or look whether it is done."""

    __slots__ = ("_index", "_pledge", "_target")

    def __init__(self, target: Target[P, R], pledge: P, index: int) -> None:
        self._target, self._pledge, self._index = target, pledge, index

    def __await__(self) -> Generator[object, None, R]:
        if self._pledge.outcome is None:
            yield from self._target.link.settled(self._pledge).__await__()
        return result(self._target, self._pledge, self._index)

    @property
    def done(self) -> bool:
        return self._pledge.outcome is not None

    def result(self) -> R:
        """Of one that is done; raises what became of it, if it wasn't appended."""
        return result(self._target, self._pledge, self._index)
