"""What connections count of themselves, and who is told when there is room again."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.bolt.protocol import codec
from anabranch.core.bolt.protocol.messages import Append, ClientMessage
from anabranch.core.budget import STRANGERS
from anabranch.core.errors import Overloaded
from anabranch.core.limits import KIB, Limits
from anabranch.core.types import LogId
from anabranch.core.wire.frames import HEADER, FrameReader
from anabranch.shell.server.budgets import HELLO_BYTES_MAX, Budgets, FirstFrame, Share

LIMITS = Limits(request_bytes_max=100_000, reply_bytes_max=256 * KIB, connections_max=4)
FRAME_BYTES_MAX = 50_000


class QueryAnswer:
    """Somebody who waits, and notes what it is told."""

    def __init__(self) -> None:
        self.resumed = asyncio.Event()
        self.aborted = False

    def resume(self) -> None:
        self.resumed.set()

    def abort(self) -> None:
        self.aborted = True


class Guest:
    """One connection's share, and the stream that it reads."""

    def __init__(self, budgets: Budgets, who: str) -> None:
        self.told = QueryAnswer()
        self.share = Share(budgets, self.told)
        self.reader: FrameReader[ClientMessage] = codec.requests(FRAME_BYTES_MAX)
        self.crowded = self.share.enter(who)

    def count(self, open_bytes: int) -> bool:
        return self.share.count_requests(open_bytes, self.reader)

    def leave(self) -> None:
        self.share.leave(self.reader)


def run(scene: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(scene(), 20)

    asyncio.run(bounded())


def append_of(size: int) -> bytes:
    return b"".join(codec.encode_request(1, Append(LogId(1), bytes(size))))


STEPS = st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 60_000)), max_size=30)


@given(STEPS)
def test_what_connections_hold_is_counted_and_given_back_when_they_leave(
    steps: list[tuple[int, int]],
) -> None:
    """-1: the connection leaves."""

    async def scene() -> None:
        budgets = Budgets(LIMITS)
        guests = [Guest(budgets, who) for who in ("ann", "ann", "bob", "eve")]
        held = [0] * 4
        for nth, open_bytes in steps:
            if open_bytes < 0:
                guests[nth].leave()
                guests[nth] = Guest(budgets, ("ann", "ann", "bob", "eve")[nth])
                held[nth] = 0
            else:
                free = guests[nth].count(open_bytes)
                held[nth] = open_bytes
                assert free == (sum(held) + 1 <= 100_000 and _has_share(held, nth))
            assert budgets.requests.used == sum(held)
            assert budgets.requests.held("ann") == held[0] + held[1]
        for guest in guests:
            guest.leave()
        assert budgets.gauges().request_bytes == budgets.gauges().connections == 0
        assert budgets.gauges().waiting == 0

    run(scene)


def _has_share(held: list[int], nth: int) -> bool:
    """Nobody holds more than what is left, but for the last byte."""
    of_principal = held[0] + held[1] if nth < 2 else held[nth]
    return not of_principal or 100_000 - sum(held) - of_principal > 1


def test_whoever_finds_no_room_is_told_when_something_is_given_back() -> None:
    async def scene() -> None:
        budgets = Budgets(LIMITS)
        greedy, late = Guest(budgets, "ann"), Guest(budgets, "bob")
        assert not greedy.count(100_000)
        assert not late.count(0)
        assert budgets.gauges().waiting == 2
        assert not late.told.resumed.is_set()
        greedy.count(10)
        await late.told.resumed.wait()
        assert late.count(0)
        assert budgets.gauges().waiting == 0

    run(scene)


def test_a_frame_has_room_for_all_of_it_before_more_of_it_is_read() -> None:
    """Connections that each have a part of a frame would wait for each other for ever."""

    async def scene() -> None:
        budgets = Budgets(LIMITS)
        guests = [Guest(budgets, who) for who in ("ann", "bob", "eve")]
        frame = append_of(45_000)
        taken: list[bool] = []
        for guest in guests:
            guest.reader.feed(frame[:5_000])
            taken.append(guest.count(0))
        assert taken == [True, True, False]
        assert budgets.requests.used == 2 * len(frame)
        guests[0].reader.feed(frame[5_000:])
        assert guests[0].count(45_000) is False, "what came whole is held until it is answered"
        assert guests[0].count(0)
        await guests[2].told.resumed.wait()
        assert guests[2].count(0)
        for guest in guests:
            guest.leave()
        assert budgets.requests.used == 0

    run(scene)


@pytest.mark.parametrize("cut", range(1, 28))
def test_a_frame_cut_anywhere_is_counted_from_its_length_on(cut: int) -> None:
    async def scene() -> None:
        budgets = Budgets(LIMITS)
        guest = Guest(budgets, "ann")
        frame = append_of(4)
        guest.reader.feed(frame[:cut])
        assert guest.count(0)
        announced = len(frame) if 4 <= cut < len(frame) else 0
        assert budgets.requests.used == announced
        guest.reader.feed(frame[cut:])
        guest.count(68)
        assert budgets.requests.used == 68
        guest.leave()
        assert budgets.requests.used == 0
        assert not guest.reader.partial

    run(scene)


def test_strangers_and_clients_are_different_principals() -> None:
    async def scene() -> None:
        budgets = Budgets(LIMITS)
        guest = Guest(budgets, STRANGERS)
        assert guest.crowded is None
        assert budgets.connections.held(STRANGERS) == 1
        guest.leave()
        guest = Guest(budgets, "ann")
        assert guest.crowded is None
        assert (budgets.connections.held(STRANGERS), budgets.connections.held("ann")) == (0, 1)
        others = [Guest(budgets, "ann") for _ in range(4)]
        assert any(isinstance(other.crowded, Overloaded) for other in others)
        for other in others:
            other.leave()
        assert budgets.connections.used == 1, "who wasn't let in gives nothing back"

    run(scene)


def test_nobody_gets_credit_for_what_did_not_come() -> None:
    async def scene() -> None:
        budgets = Budgets(LIMITS)
        guest = Guest(budgets, "ann")
        window = guest.share.subscribe(1, 20_000, 1 << 20)
        assert window == guest.share.window_bytes == budgets.replies.used
        assert guest.share.consumed(1, 500) == 0
        guest.share.delivered(1, 300)
        assert guest.share.consumed(1, 500) == 300
        assert guest.share.consumed(1, 500) == 0
        assert guest.share.consumed(9, 500) == 0
        guest.share.release(1)
        assert guest.share.window_bytes == budgets.replies.used == 0
        assert budgets.gauges().subscriptions == 0

    run(scene)


def test_a_window_shrinks_where_there_is_little_room_and_never_below_the_least() -> None:
    async def scene() -> None:
        budgets = Budgets(LIMITS)
        guest = Guest(budgets, "ann")
        asked = (guest.share.subscribe(request, 1 << 20, 1 << 20) for request in range(1, 100))
        windows: list[int] = []
        with pytest.raises(Overloaded, match="windows of subscriptions"):
            windows.extend(asked)
        assert windows == sorted(windows, reverse=True)
        assert windows[-1] == 16 * KIB
        assert budgets.replies.used == sum(windows) <= LIMITS.reply_bytes_max
        assert budgets.subscriptions.used == len(windows)

    run(scene)


def test_what_lies_unfetched_is_counted_beyond_the_windows_alone() -> None:
    async def scene() -> None:
        budgets = Budgets(LIMITS)
        guest = Guest(budgets, "ann")
        window = guest.share.subscribe(1, 16 * KIB, 1 << 20)
        guest.share.count_unfetched(window)
        assert not guest.share.has_unfetched
        guest.share.count_unfetched(window + 5_000)
        assert guest.share.has_unfetched
        assert budgets.replies.used == window + 5_000
        guest.share.count_unfetched(0)
        assert not guest.share.has_unfetched
        assert budgets.replies.used == window

    run(scene)


@given(st.integers(0, HELLO_BYTES_MAX - 8), st.binary(max_size=50), st.data())
def test_a_first_frame_is_found_in_any_pieces(
    size: int, behind: bytes, data: st.DataObject
) -> None:
    frame = HEADER.pack(8 + size, 1, 0, 0, 1) + bytes(size)
    stream = frame + behind
    cut = data.draw(st.integers(0, len(stream)))
    first = FirstFrame()
    found = [each for each in map(first.feed, (stream[:cut], stream[cut:])) if each is not None]
    if len(frame) > HELLO_BYTES_MAX:
        return
    assert found == [frame]
    assert first.crowded is None
    assert first.rest() == behind
    assert first.rest() == b""


def test_no_more_than_one_small_frame_is_kept_behind_the_first() -> None:
    first = FirstFrame()
    frame = HEADER.pack(8, 1, 0, 0, 1)
    assert first.feed(frame) == frame
    first.feed(bytes(HELLO_BYTES_MAX))
    assert first.crowded is None
    first.feed(b"x")
    assert first.crowded is not None
