"""A view: the members that all have to hold an append before it is acknowledged."""

from typing import Annotated

import msgspec

from anabranch.core.sequencing.protocol.ids import Member
from anabranch.core.wire.numbers import Bounded

ViewNumber = Annotated[int, msgspec.Meta(ge=0, lt=1 << 40)]
"""A shard's fence is made of it and of 20 bits more, and must stay below `NEVER`."""


class Ballot(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """One attempt to start a view. A later attempt replaces what an earlier one prepared."""

    view: ViewNumber
    term: Bounded
    """The term of the controller that makes the attempt."""
    attempt: Bounded = 0
    """Of this controller: it tries another source under another number."""


class View(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    ballot: Ballot
    members: tuple[Member, ...]
    leader: str
    """The node of the member that orders."""
    base: Bounded = 0
    """What was ordered at the member whose ring the view began with: final positions."""

    @property
    def number(self) -> int:
        return self.ballot.view

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(member.node for member in self.members)

    def has(self, node: str, life: int) -> bool:
        return Member(node, life) in self.members
