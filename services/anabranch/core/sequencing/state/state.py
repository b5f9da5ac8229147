"""The state that a view hands over to the next one: what is ordered, what isn't, what is known."""

from collections.abc import Sequence

import msgspec

from anabranch.core.limits import Limits
from anabranch.core.producers import is_request
from anabranch.core.records.batch import peek
from anabranch.core.records.digest import UNKNOWN, digest_of_records
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.state.duplicates import Duplicates, KnownAppends
from anabranch.core.sequencing.state.ring import Announcement, Entry, Ring
from anabranch.core.types import Nanoseconds, Position


class StateImage(msgspec.Struct, frozen=True, array_like=True):
    """A state as it is sent and journaled."""

    ordered: Position = 0
    entries: list[Entry] = []
    known: KnownAppends = msgspec.field(default_factory=KnownAppends)


class State:
    def __init__(self, limits: Limits, image: StateImage | None = None) -> None:
        image = image or StateImage()
        self.ordered = image.ordered
        """Everything below is ordered."""
        self.ring = Ring()
        self.known = Duplicates(limits, image.known)
        for entry in image.entries:
            self.ring.add(entry)

    @property
    def tail(self) -> Position:
        """As many records are ordered or in the ring."""
        return self.ordered + self.ring.records

    def add(
        self,
        entry: Entry,
        lowest: int,
        now: Nanoseconds,
        announced: Announcement | None = None,
    ) -> None:
        """A new append."""
        self.ring.add(entry, announced)
        self.known.add(entry.id, now, digest_of_entry(entry), entry.shard)
        self.known.heard(entry.id, lowest, now)

    def drop(
        self,
        ids: Sequence[AppendId],
        positions: Sequence[Position],
        *,
        upto: Position,
        now: Nanoseconds,
        shards: Sequence[str] = (),
    ) -> None:
        """These are ordered, and known from now on whether they were in the ring or not. Done
        twice, it leads to the same state. `shards`: of each, where its data is, if it is a request.
        """
        assert len(ids) == len(positions)
        shards = shards or [""] * len(ids)
        for id, position, shard in zip(ids, positions, shards, strict=True):
            assert position < upto
            self.ring.remove(id)
            self.known.place(id, position, now, shard)
        self.ordered = max(self.ordered, upto)

    def void(self, ids: Sequence[AppendId]) -> None:
        """These leave the ring without being ordered."""
        for id in ids:
            if self.ring.remove(id) is not None:
                self.known.void(id)

    def image(self) -> StateImage:
        """It shares parts with this state: encode it before anything changes."""
        return StateImage(self.ordered, list(self.ring), self.known.image())


def digest_of_entry(entry: Entry) -> int:
    """Of the records of an append whose id its caller chose; `UNKNOWN` for any other."""
    id = entry.id
    if not is_request(id.producer, id.epoch, id.sequence):
        return UNKNOWN
    if not entry.batch:
        return entry.digest
    return digest_of_records(entry.batch, peek(entry.batch))


encode_state = msgspec.msgpack.Encoder().encode
_states = msgspec.msgpack.Decoder(StateImage)


def decode_state(image: bytes) -> StateImage:
    return _states.decode(image)
