"""What connections of a process share, against a naive account of who holds what."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.shell.nodes import run, until

from anabranch.core.belfast.protocol.codec import CODEC
from anabranch.core.belfast.protocol.messages import Hello
from anabranch.core.budget import STRANGERS
from anabranch.core.errors import Overloaded
from anabranch.core.limits import KIB, Limits
from anabranch.core.types import MS
from anabranch.core.wire.frames import FrameReader
from anabranch.shell.server.budgets import HELLO_BYTES_MAX, Budgets, FirstFrame, Share

LIMITS = Limits(
    connections_max=8,
    request_bytes_max=64 * KIB,
    reply_bytes_max=512 * KIB,
    subscriptions_max=6,
    requests_max=80,
)
PEOPLE = ("ann", "ben", "eve")


class Bearer:
    """A connection as its share sees it."""

    def __init__(self) -> None:
        self.resumed = 0
        self.aborted = 0

    def resume(self) -> None:
        self.resumed += 1

    def abort(self) -> None:
        self.aborted += 1


def reader() -> FrameReader[Any]:
    return CODEC.requests(1 << 20)


@dataclass
class Held:
    """What one connection holds, by our own count."""

    who: str
    share: Share
    requests: int = 0
    replies: dict[int, int] = field(default_factory=dict[int, int])
    windows: dict[int, int] = field(default_factory=dict[int, int])
    came: dict[int, int] = field(default_factory=dict[int, int])
    gone: bool = False


actions = st.lists(
    st.tuples(
        st.sampled_from(
            ["enter", "ask", "answer", "reserve", "release", "subscribe", "deliver", "leave"]
        ),
        st.integers(0, 7),
        st.integers(0, 40_000),
    ),
    max_size=60,
)


class Account:
    def __init__(self) -> None:
        self.budgets = Budgets(LIMITS)
        self.all: list[Held] = []
        self.number = 0

    @property
    def there(self) -> list[Held]:
        return [each for each in self.all if not each.gone]

    def act(self, what: str, which: int, much: int) -> None:
        if what == "enter":
            self._enter(PEOPLE[which % len(PEOPLE)])
        elif self.there:
            getattr(self, f"_{what}")(self.there[which % len(self.there)], much)
        self._check()

    def _enter(self, who: str) -> None:
        share = Share(self.budgets, Bearer())
        if share.enter(who) is None:
            self.all.append(Held(who, share))
        else:
            share.leave(reader())

    def _ask(self, held: Held, much: int) -> None:
        held.requests += much
        held.share.count_requests(held.requests, reader())

    def _answer(self, held: Held, much: int) -> None:
        held.requests = max(0, held.requests - much)
        held.share.count_requests(held.requests, reader())

    def _reserve(self, held: Held, much: int) -> None:
        self.number += 1
        if held.share.reserve(self.number, much):
            held.replies[self.number] = much

    def _release(self, held: Held, much: int) -> None:
        held.share.release(much)
        held.replies.pop(much, None)
        held.windows.pop(much, None)
        if held.replies or held.windows:
            request = next(iter({**held.replies, **held.windows}))
            held.share.release(request)
            held.replies.pop(request, None)
            held.windows.pop(request, None)

    def _subscribe(self, held: Held, much: int) -> None:
        self.number += 1
        try:
            window = held.share.subscribe(self.number, much + 1, 1 << 20)
        except Overloaded:
            return
        assert 1 <= window <= max(much + 1, 1)
        held.windows[self.number], held.came[self.number] = window, 0

    def _deliver(self, held: Held, much: int) -> None:
        for request in held.windows:
            held.share.delivered(request, much)
            held.came[request] += much
            credit = held.share.consumed(request, much // 2 + 7)
            assert credit == min(much // 2 + 7, held.came[request]), "no more than came"
            held.came[request] -= credit

    def _leave(self, held: Held, much: int) -> None:
        held.share.leave(reader())
        held.gone = True

    def _check(self) -> None:
        gauges, there = self.budgets.gauges(), self.there
        assert gauges.connections == len(there) <= LIMITS.connections_max
        assert gauges.request_bytes == sum(each.requests for each in there)
        replies = sum(sum(each.replies.values()) for each in there)
        windows = sum(sum(each.windows.values()) for each in there)
        assert gauges.reply_bytes == replies + windows <= LIMITS.reply_bytes_max
        assert gauges.subscriptions == sum(len(each.windows) for each in there)
        for each in there:
            assert each.share.window_bytes == sum(each.windows.values())


@settings(max_examples=150, deadline=None)
@given(actions)
def test_what_is_counted_is_what_is_held_and_all_of_it_comes_back(
    program: list[tuple[str, int, int]],
) -> None:
    async def scene() -> None:
        account = Account()
        for action in program:
            account.act(*action)
        for held in account.there:
            held.share.leave(reader())
        gauges = account.budgets.gauges()
        left = (gauges.connections, gauges.request_bytes, gauges.reply_bytes, gauges.subscriptions)
        assert left == (0, 0, 0, 0)

    run(scene())


def test_one_principal_leaves_room_for_the_next() -> None:
    async def scene() -> None:
        budgets = Budgets(LIMITS)
        greedy: list[Share] = []
        for _ in range(LIMITS.connections_max):
            share = Share(budgets, Bearer())
            assert share.enter("ann") is None or greedy
            greedy.append(share)
        crowded = Share(budgets, Bearer()).enter("ann")
        assert isinstance(crowded, Overloaded)
        assert crowded.facts["setting"] == "connections_max"
        assert Share(budgets, Bearer()).enter("ben") is None

    run(scene())


def test_who_waits_is_told_once_something_was_given_back() -> None:
    async def scene() -> None:
        budgets, bearer = Budgets(LIMITS), Bearer()
        first, second = Share(budgets, Bearer()), Share(budgets, bearer)
        assert first.enter("ann") is None
        assert second.enter("ben") is None
        assert first.reserve(1, 500 * KIB)
        assert not second.reserve(2, 100 * KIB)
        assert (budgets.gauges().waiting, bearer.resumed) == (1, 0)
        first.release(1)
        await until(lambda: bearer.resumed == 1)
        assert second.reserve(2, 100 * KIB)
        assert budgets.gauges().waiting == 0

    run(scene())


def test_a_share_that_was_handed_on_tells_its_new_bearer() -> None:
    async def scene() -> None:
        budgets, old, new = Budgets(LIMITS), Bearer(), Bearer()
        full, share = Share(budgets, Bearer()), Share(budgets, old)
        assert full.enter("ann") is None
        assert share.enter("ben") is None
        assert full.reserve(1, 500 * KIB)
        assert not share.reserve(2, 100 * KIB)
        share.hand_to(new)
        assert not share.reserve(2, 100 * KIB)
        full.release(1)
        await until(lambda: new.resumed == 1)
        assert old.resumed == 0

    run(scene())


def test_a_share_that_has_left_asks_for_nothing_and_gives_nothing_twice() -> None:
    async def scene() -> None:
        budgets = Budgets(LIMITS)
        share = Share(budgets, Bearer())
        assert share.enter("ann") is None
        assert share.reserve(1, 100)
        for _ in range(2):
            share.leave(reader())
            assert budgets.gauges().reply_bytes == 0
        assert not share.reserve(2, 1)
        assert share.count_requests(1_000, reader())
        share.count_unfetched(1 << 20)
        assert budgets.gauges().request_bytes == 0

    run(scene())


def test_windows_grow_small_before_they_are_refused() -> None:
    async def scene() -> None:
        budgets = Budgets(LIMITS)
        share = Share(budgets, Bearer())
        assert share.enter("ann") is None
        windows: list[int] = []

        def open_all() -> None:
            while True:
                request = len(windows) + 1
                windows.append(share.subscribe(request, 1 << 20, 1 << 20))

        with pytest.raises(Overloaded) as refused:
            open_all()
        assert windows == sorted(windows, reverse=True)
        assert min(windows) >= 16 * KIB
        assert refused.value.facts["setting"] in {"subscriptions_max", "reply_bytes_max"}
        assert budgets.gauges().subscriptions == len(windows), "the refused one holds nothing"

    run(scene())


def test_what_a_client_doesnt_fetch_is_counted_beyond_its_windows() -> None:
    async def scene() -> None:
        budgets = Budgets(LIMITS)
        share = Share(budgets, Bearer())
        assert share.enter("ann") is None
        window = share.subscribe(1, 16 * KIB, 1 << 20)
        share.count_unfetched(window)
        assert budgets.gauges().reply_bytes == window, "that much was reserved"
        share.count_unfetched(window + 10 * KIB)
        assert budgets.gauges().reply_bytes == window + 10 * KIB
        share.count_unfetched(window + 100)
        assert budgets.gauges().reply_bytes == window, "little is gone at the turn's end"

    run(scene())


def test_commands_that_are_remembered_are_rationed_by_principal() -> None:
    async def scene() -> None:
        budgets = Budgets(LIMITS)
        share, other = Share(budgets, Bearer()), Share(budgets, Bearer())
        assert share.enter("ann") is None
        assert other.enter("ben") is None
        taken = 0
        while share.remember(0) is None:
            taken += 1
        assert 0 < taken < LIMITS.requests_max
        assert other.remember(0) is None, "another still may"
        later = 2 * LIMITS.request_memory_min_ms * MS
        assert share.remember(later) is None, "what was remembered long ago is forgotten"

    run(scene())


@given(st.binary(max_size=300), st.binary(max_size=300), st.lists(st.integers(1, 50), max_size=30))
def test_a_first_frame_is_cut_out_however_its_bytes_come(
    body: bytes, behind: bytes, pieces: list[int]
) -> None:
    frame = CODEC.encode_request(1, _hello(body))
    whole = b"".join(bytes(part) for part in frame)
    first, found, stream, at = FirstFrame(), list[bytes](), whole + behind, 0
    for size in (*pieces, len(stream)):
        piece = first.feed(stream[at : at + size])
        at += size
        if piece is not None:
            found.append(piece)
    assert found == [whole]
    assert first.crowded is None
    assert first.rest() == behind
    assert first.rest() == b""


def _hello(client: bytes) -> Hello:
    return Hello(1, "c", client.hex())


def test_a_stranger_who_says_too_much_is_cut_off() -> None:
    first = FirstFrame()
    frame = b"".join(bytes(part) for part in CODEC.encode_request(1, _hello(b"")))
    assert first.feed(frame + bytes(HELLO_BYTES_MAX)) == frame
    assert first.crowded is None
    first.feed(b"x")
    assert first.crowded is not None
    assert str(HELLO_BYTES_MAX) in first.crowded.message


def test_strangers_share_one_part() -> None:
    async def scene() -> None:
        budgets = Budgets(LIMITS)
        shares = [Share(budgets, Bearer()) for _ in range(LIMITS.connections_max)]
        entered = [share for share in shares if share.enter(STRANGERS) is None]
        assert 0 < len(entered) < LIMITS.connections_max
        assert budgets.connections.held(STRANGERS) == len(entered)
        entered[0].leave(reader())
        assert budgets.connections.held(STRANGERS) == len(entered) - 1
        await asyncio.sleep(0)

    run(scene())
