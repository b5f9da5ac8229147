"""Streams of shards become one log again, by position.

Every position belongs to one append, and one shard sends it: a record, or a no-op. So the next
piece is the one that begins where the last one ended, whichever shard it comes from. If every shard
that is known has told of more and none has sent that piece, there is a shard that isn't known yet.
"""

from anabranch.client.erwin.pieces import Piece
from anabranch.core.types import Position


class Merge:
    """What came and wasn't taken."""

    def __init__(self, start: Position) -> None:
        self.next = start
        """Everything below was taken."""
        self.upto: dict[str, Position] = {}
        """Of each shard: all that it has below this has come."""
        self._pieces: dict[Position, Piece] = {}

    def follow(self, shard: str) -> Position:
        """Where the shard is to be asked from."""
        return max(self.next, self.upto.get(shard, self.next))

    def forget(self, shard: str) -> None:
        """The shard is gone from the configuration."""
        self.upto.pop(shard, None)

    def add(self, piece: Piece) -> bool:
        """False if it was there already: shards repeat what they sent when they are asked again."""
        # A piece may begin before the position that was asked for, but only the first one.
        first = max(piece.first, self.next)
        if piece.end <= self.next or first in self._pieces:
            return False
        self._pieces[first] = piece
        return True

    def tell(self, shard: str, upto: Position) -> None:
        self.upto[shard] = max(upto, self.upto.get(shard, 0))

    @property
    def ready(self) -> bool:
        return self.next in self._pieces

    @property
    def gap(self) -> bool:
        """Has every known shard told of the next position, and none of whose it is?"""
        if self.ready or not self.upto:
            return False
        return min(self.upto.values()) > self.next

    def take(self) -> Piece | None:
        """The next piece, if it is there."""
        piece = self._pieces.pop(self.next, None)
        if piece is not None:
            self.next = piece.end
        return piece
