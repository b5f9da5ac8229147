"""Streams of shards become one log again: merged by position, without gaps (Belfast, 4.3; G2).

A record is next when every shard that may have an earlier one has said that it has none. Who may
is told by eras: from this position on, positions belong to these shards.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence

from anabranch.client.session.records import LogRecord
from anabranch.core.types import Position

Era = tuple[Position, tuple[str, ...]]


def position_of(record: LogRecord) -> Position:
    return record.position


class Piece:
    """Records of one shard in a row: no other's lie between them."""

    __slots__ = ("credit", "records", "shard")

    def __init__(self, shard: str, records: Sequence[LogRecord], credit: int = 0) -> None:
        assert records, "a piece has something in it"
        self.shard = shard
        self.records = records
        self.credit = credit
        """Bytes that the shard may send once these are done with."""

    @property
    def first(self) -> Position:
        return self.records[0].position

    @property
    def last(self) -> Position:
        return self.records[-1].position

    def split(self, at: Position) -> "tuple[Piece | None, Piece | None]":
        """What lies below, and what doesn't; the credit is with what comes last."""
        below = self.count_below(at)
        if below == len(self.records):
            return self, None
        return self.cut(below) if below else (None, self)

    def count_below(self, at: Position) -> int:
        if self.last < at:
            return len(self.records)
        return bisect_left(self.records, at, key=position_of)

    def cut(self, count: int) -> "tuple[Piece, Piece]":
        """The first so many records, and the others with the credit."""
        assert 0 < count < len(self.records)
        ahead = Piece(self.shard, self.records[:count])
        return ahead, Piece(self.shard, self.records[count:], self.credit)


class Track:
    """What one shard has sent and nobody has taken yet."""

    __slots__ = ("pieces", "upto")

    def __init__(self, upto: Position) -> None:
        self.upto = upto
        """All of the shard's records below this have come."""
        self.pieces: deque[Piece] = deque()


class Merge:
    """Of all shards, or of some."""

    def __init__(self, start: Position, shards: frozenset[str] | None = None) -> None:
        self.next = start
        """Everything wanted below was taken."""
        self.known: Position = -1
        """Up to here there is no other era than those of `eras`."""
        self.eras: list[Era] = []
        self.tracks: dict[str, Track] = {}
        self._shards = shards

    def wants(self, shard: str) -> bool:
        return self._shards is None or shard in self._shards

    def tell(self, eras: Sequence[Era], known: Position) -> None:
        """What a shard knows of eras: it has told of all up to where it knew before."""
        if known < self.known:
            return
        # An era at which nothing was published yet may be told anew, with other shards.
        fresh = [era for era in eras if era[0] >= self.known]
        while fresh and self.eras and self.eras[-1][0] >= fresh[0][0]:
            self.eras.pop()
        self.eras.extend(fresh)
        self.known = known

    def forget(self, below: Position) -> None:
        """Nobody goes back below this position."""
        eras = self.eras
        while len(eras) > 1 and eras[1][0] <= below:
            eras.pop(0)
        if not eras:
            return
        seated = {shard: True for _, shards in eras for shard in shards}
        for shard in [each for each in self.tracks if each not in seated]:
            if not self.tracks[shard].pieces and self._shards is None:
                del self.tracks[shard]

    def follow(self, shard: str, start: Position) -> None:
        """The shard is asked from here on: it has nothing between this and what came of it."""
        track = self.tracks.setdefault(shard, Track(start))
        track.upto = max(track.upto, start)

    def spans(self) -> Iterator[tuple[Position, Position, tuple[str, ...]]]:
        """Every era with its end; the last has none that is known."""
        for index, (start, shards) in enumerate(self.eras):
            following = self.eras[index + 1 :]
            yield start, following[0][0] if following else self.known, shards

    def missing(self) -> dict[str, Position]:
        """Shards that may have records which haven't come, and from where on."""
        missing: dict[str, Position] = {}
        last = len(self.eras) - 1
        for index, (start, end, shards) in enumerate(self.spans()):
            for shard in shards:
                if shard in missing or not self.wants(shard):
                    continue
                track = self.tracks.get(shard)
                upto = max(start, self.next) if track is None else track.upto
                if index == last or upto < end:
                    missing[shard] = max(start, upto)
        return missing

    def edge(self) -> Position:
        """Below this, everything has come that is wanted and not taken."""
        edge = self.next
        for _, end, shards in self.spans():
            if end <= edge:
                continue
            limit = end
            for shard in shards:
                if self.wants(shard):
                    track = self.tracks.get(shard)
                    limit = min(limit, edge if track is None else track.upto)
            edge = max(edge, limit)
            if limit < end:
                break
        return edge

    def empty_to(self) -> Position:
        """Below this, everything has come, and nothing of it is left to take."""
        firsts = (track.pieces[0].first for track in self.tracks.values() if track.pieces)
        return min((self.edge(), *firsts))

    def take(self, edge: Position, count_max: int) -> Piece | None:
        """The next records below the edge, and no others: a piece that reaches beyond it is cut."""
        head = None
        for track in self.tracks.values():
            if track.pieces and (head is None or track.pieces[0].first < head.pieces[0].first):
                head = track
        if head is None or head.pieces[0].first >= edge:
            self.next = max(self.next, edge)
            return None
        piece = head.pieces.popleft()
        count = min(piece.count_below(edge), count_max)
        if count < len(piece.records):
            piece, rest = piece.cut(count)
            head.pieces.appendleft(rest)
        assert piece.first >= self.next, "a position is taken once (G2)"
        self.next = piece.last + 1
        return piece

    def give_back(self, pieces: Sequence[Piece]) -> None:
        """What was taken last comes again."""
        for piece in reversed(pieces):
            self.tracks[piece.shard].pieces.appendleft(piece)
