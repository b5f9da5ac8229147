"""What the sequencing group agrees on, one after the other: everything that all must know alike.

An entry of the group's log is a list of decisions, applied together (ledger.py). Structs are
arrays: fields are only ever added at the end.
"""

from collections.abc import Sequence

import msgspec

from anabranch.core.belfast.ledger.windows import Mode, ShardId
from anabranch.core.types import Position


class Decision(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Base: only so that the union below reads well."""


class Admit(Decision, frozen=True, tag="admit"):
    """A shard is known from here on, or back, and gets a seat in a window to come (4.5)."""

    name: str
    replicas: tuple[str, ...]
    """Their addresses; the first is its primary."""
    quota: int
    """What it demands; 0: as the rules say."""
    disks: tuple[int, ...] = ()
    """Of its replicas, in their order: what they have journaled is there, or another is said."""


class Release(Decision, frozen=True, tag="release"):
    """A shard leaves: it keeps its seats, and gets no more."""

    shard: ShardId


class Arrange(Decision, frozen=True, kw_only=True, tag="arrange"):
    """The replicas of a shard from this epoch on; what the primary of another says is void."""

    shard: ShardId
    epoch: int
    primary: str
    replicas: tuple[str, ...]
    disks: tuple[int, ...] = ()
    """Of these replicas: one that has lost its own isn't of this epoch."""


class OpenWindow(Decision, frozen=True, tag="window"):
    """The next window, right behind the last one; where it starts follows from that.

    Behind a window of free will it starts at the last cut, which ends that window.
    """

    number: int
    mode: Mode
    rounds: int
    groups: int
    quotas: tuple[tuple[ShardId, int], ...]
    """In the order of shards; of those alone that have a quota."""


class CutTo(Decision, frozen=True, kw_only=True, tag="cut"):
    """The actual cuts of this window up to here: equal to the predetermined ones (F5).

    A window is cut to its end before the next is cut at all.
    """

    window: int
    cut: int


class CutFreely(Decision, frozen=True, tag="free"):
    """An actual cut of a window of free will: each seat's records in it so far, by seat."""

    window: int
    counts: tuple[int, ...]


class ChangeView(Decision, frozen=True, kw_only=True, tag="view"):
    """These shards have failed as a whole: what the cuts haven't reached of theirs is no-ops (4.8).

    `stand_in` serves their subscribers.
    """

    view: int
    failed: tuple[ShardId, ...]
    stand_in: ShardId


class TrimTo(Decision, frozen=True, tag="trim"):
    """Nobody reads below this position any more."""

    position: Position


AnyDecision = Admit | Release | Arrange | OpenWindow | CutTo | CutFreely | ChangeView | TrimTo

_pack = msgspec.msgpack.Encoder().encode
_unpack: "msgspec.msgpack.Decoder[list[AnyDecision]]" = msgspec.msgpack.Decoder(list[AnyDecision])


def encode_entry(decisions: Sequence[AnyDecision]) -> bytes:
    return _pack(decisions)


def decode_entry(entry: bytes | memoryview) -> list[AnyDecision]:
    return _unpack.decode(entry)
