"""How many members of a group must hold an entry before the group counts it as durable."""

from collections.abc import Sequence
from enum import Enum

import msgspec


class _Kind(Enum):
    MAJORITY = "majority"
    ALL = "all"
    FAILURES = "failures"


class Quorum(msgspec.Struct, frozen=True):
    """A rule, applied to a group of any size: `MAJORITY`, `ALL` or `f_plus_one(f)`."""

    kind: _Kind
    failures: int = 0

    def size(self, members: int) -> int:
        """So many members make a quorum. It may be more than there are: a group that is smaller
        than f + 1 makes nothing durable.
        """
        assert members > 0
        match self.kind:
            case _Kind.MAJORITY:
                return members // 2 + 1
            case _Kind.ALL:
                return members
            case _Kind.FAILURES:
                return self.failures + 1

    def to_recover(self, members: int) -> int:
        """Of so many members at least one is part of every quorum: together they hold everything
        that is durable.
        """
        return max(1, members - self.size(members) + 1)


MAJORITY = Quorum(_Kind.MAJORITY)
ALL = Quorum(_Kind.ALL)


def agreed(held: Sequence[int], size: int) -> int | None:
    """The end of what a quorum of this size holds, given the end of what each member holds that
    counts; None if these are fewer than a quorum.
    """
    assert size > 0
    return sorted(held)[-size] if size <= len(held) else None


def f_plus_one(failures: int) -> Quorum:
    """What is durable survives the loss of so many members, in a group of any size."""
    assert failures >= 0
    return Quorum(_Kind.FAILURES, failures)
