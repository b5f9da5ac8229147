"""The merge of shards' streams against a log that is known: all of it, in order."""

from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.client.belfast.merge import Merge, Piece
from anabranch.client.session.records import LogRecord
from anabranch.core.types import LogId

SHARDS = ("a", "b", "c")


def at(shard: str, position: int) -> LogRecord:
    return LogRecord(position, b"%d" % position, None, (), 0, LogId(0), position, shard)


eras = st.lists(
    st.tuples(st.sets(st.sampled_from(SHARDS), min_size=1), st.integers(1, 12)),
    min_size=1,
    max_size=4,
)


class Log:
    """Whose each position is; some are no-ops. `told`: up to where each shard knows of eras."""

    def __init__(self, plan: list[tuple[set[str], int]], data: st.DataObject) -> None:
        self.eras: list[tuple[int, tuple[str, ...]]] = []
        self.owner: list[str] = []
        for shards, length in plan:
            seats = tuple(sorted(shards))
            if not self.eras or self.eras[-1][1] != seats:
                self.eras.append((len(self.owner), seats))
            self.owner += [data.draw(st.sampled_from(seats)) for _ in range(length)]
        self.noop = [data.draw(st.booleans()) for _ in self.owner]

    def pieces(self, shard: str, start: int, end: int) -> list[Piece]:
        """No other shard's positions lie within one."""
        found: list[list[LogRecord]] = []
        last = -2
        for position in range(start, end):
            if self.owner[position] == shard and not self.noop[position]:
                if position != last + 1:
                    found.append([])
                found[-1].append(at(shard, position))
                last = position
        return [Piece(shard, records) for records in found]


@settings(max_examples=100)
@given(plan=eras, data=st.data())
def test_whatever_comes_first_the_log_is_taken_in_order_and_none_of_it_too_soon(
    plan: list[tuple[set[str], int]], data: st.DataObject
) -> None:
    log = Log(plan, data)
    end = len(log.owner)
    start = data.draw(st.integers(0, end))
    wanted = data.draw(st.none() | st.sets(st.sampled_from(SHARDS), min_size=1).map(frozenset))
    merge = Merge(start, wanted)
    taken: list[LogRecord] = []
    known = start
    for _ in range(25):
        if merge.next >= end and known >= end:
            break
        if data.draw(st.booleans()) or known <= start:
            known = data.draw(st.integers(known, end)) if known < end else end
            seen = [each for each in log.eras if each[0] < known or each[0] <= start]
            first = max(i for i, each in enumerate(seen) if each[0] <= start)
            merge.tell(seen[first:], known)
        for shard, begin in sorted(merge.missing().items()):
            merge.follow(shard, begin)
            track = merge.tracks[shard]
            upto = data.draw(st.integers(track.upto, max(track.upto, end)))
            track.pieces.extend(log.pieces(shard, track.upto, min(upto, end)))
            track.upto = max(track.upto, upto)
        edge = merge.edge()
        assert edge <= known, "nothing is taken beyond what is known of eras"
        while (piece := merge.take(edge, data.draw(st.integers(1, 5)))) is not None:
            taken += piece.records
        merge.forget(min(merge.next, end))
    expected = [
        at(log.owner[position], position)
        for position in range(start, end)
        if not log.noop[position] and (wanted is None or log.owner[position] in wanted)
    ]
    assert taken == expected[: len(taken)], "in order, without a gap"
    if known >= end and all(track.upto >= end for track in merge.tracks.values()):
        assert taken == expected


@given(st.lists(st.integers(0, 40), min_size=1, unique=True).map(sorted), st.integers(0, 45))
def test_a_piece_is_parted_at_a_position_and_its_credit_comes_last(
    positions: list[int], edge: int
) -> None:
    piece = Piece("a", [at("a", each) for each in positions], 100)
    below, above = piece.split(edge)
    first = [] if below is None else [each.position for each in below.records]
    rest = [] if above is None else [each.position for each in above.records]
    assert first == [each for each in positions if each < edge]
    assert rest == [each for each in positions if each >= edge]
    assert (below.credit if below else 0) + (above.credit if above else 0) == 100
    assert (above or below or piece).credit == 100


def test_what_was_taken_last_and_given_back_comes_again() -> None:
    merge = Merge(0)
    merge.tell([(0, ("a", "b"))], 10)
    for shard, positions in (("a", [0, 2]), ("b", [1, 3])):
        merge.follow(shard, 0)
        merge.tracks[shard].pieces.extend(Piece(shard, [at(shard, each)]) for each in positions)
        merge.tracks[shard].upto = 10
    pieces = [merge.take(10, 5) for _ in range(4)]
    assert [piece.first for piece in pieces if piece] == [0, 1, 2, 3]
    merge.give_back([piece for piece in pieces[2:] if piece])
    assert merge.empty_to() == 2
    merge.next = 2
    assert [piece.first for piece in iter(lambda: merge.take(10, 5), None)] == [2, 3]


def test_an_era_that_is_told_anew_replaces_the_one_that_nothing_was_published_in() -> None:
    merge = Merge(0)
    merge.tell([(0, ("a",)), (5, ("a", "b"))], 5)
    merge.tell([(5, ("a", "c"))], 9)
    assert merge.eras == [(0, ("a",)), (5, ("a", "c"))]
    merge.tell([(0, ("a",))], 3)
    assert merge.known == 9, "one who knows less changes nothing"
    merge.forget(7)
    assert merge.eras == [(5, ("a", "c"))]
    assert merge.missing() == {"a": 5, "c": 5}
