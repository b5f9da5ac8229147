"""The story of the demo: orders, an agent on a fork, a what-if, and two plans of which one is
right.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from anabranch.cli.render.output import Output
from anabranch.cli.render.tree import by_parent, drawn
from anabranch.cli.render.words import duration, number, shown
from anabranch.client.aio import Service
from anabranch.client.bolt.log import Log
from anabranch.client.session.records import Confirm, Deliver, Event, Fail, LogRecord
from anabranch.core.errors import ReadBlocked
from anabranch.shell.runtime.clock import Clock

if TYPE_CHECKING:
    from rich.console import Console

ORDERS = 200_000
CHUNK = 5_000
PAST = 150_000
STOCK = 100
_READING_CHARS_PER_S = 32
_PAUSE_S_MAX = 7.0

_now = Clock().now
_decode = msgspec.json.decode


class Narrator:
    """Tells, shows, and lets people read."""

    def __init__(self, console: "Console", *, pauses: bool) -> None:
        self.console = console
        self._pauses = pauses
        self.unread = 0

    def title(self, text: str) -> None:
        self.console.print(f"\n{text}", style="bold cyan")
        self.unread += len(text)

    def command(self, text: str) -> None:
        self.console.print(f"  $ {text}", style="dim")
        self.unread += len(text)

    def tell(self, text: str) -> None:
        self.console.print(text)
        self.unread += len(text)

    def show(self, lines: Sequence[str]) -> None:
        for line in lines:
            self.console.print(f"    {line}", style="green", soft_wrap=True)
            self.unread += 20

    async def pause(self) -> None:
        """As long as it takes to read what was said since the last."""
        unread, self.unread = self.unread, 0
        if self._pauses:
            await asyncio.sleep(min(_PAUSE_S_MAX, unread / _READING_CHARS_PER_S))


@dataclass(slots=True)
class Stage:
    """Who plays, and how long each fork took."""

    service: Service
    orders: Log
    narrator: Narrator
    out: Output
    times: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    names: dict[int, str] = field(default_factory=dict[int, str])

    async def fork(self, name: str, make: Callable[[], "asyncio.Future[Log]"]) -> Log:
        """Fork and time it."""
        began = _now()
        made = await make()
        self.times.append((name, (_now() - began) / 1e9))
        self.names[made.id] = made.name
        return made

    def origin(self, record: LogRecord) -> str:
        return f"{self.names.get(record.origin_log, '?')}:{record.origin_position}"


async def play(service: Service, narrator: Narrator, out: Output) -> None:
    orders = await service.create("orders", why="every order as it comes in")
    stage = Stage(service, orders, narrator, out)
    stage.names[orders.id] = orders.name
    await narrator.pause()
    for scene in (feed, agent, what_if, two_plans, overview):
        await scene(stage)
        await narrator.pause()


async def feed(stage: Stage) -> None:
    tell = stage.narrator
    tell.title(f"A root log, `orders`, and {number(ORDERS)} records")
    began = _now()
    with stage.out.progress("appending", ORDERS) as meter:
        for start in range(0, ORDERS, CHUNK):
            await stage.orders.append_many(map(order, range(start, start + CHUNK)))
            meter.advance(CHUNK)
    seconds = (_now() - began) / 1e9
    tail = await stage.orders.tail()
    assert tail == ORDERS, tail
    tell.tell(
        f"{number(ORDERS)} orders appended in {duration(seconds)}: {number(ORDERS / seconds)} a "
        "second, each on disk and in its place before it was acknowledged."
    )
    began = _now()
    await stage.orders.append(order(ORDERS))
    stage.times.append(("(one append, to compare)", (_now() - began) / 1e9))


async def agent(stage: Stage) -> None:
    tell, orders = stage.narrator, stage.orders
    tell.title("An agent gets a fork of its own")
    tell.command("anabranch fork orders agent --why 'mark what looks odd'")
    fork = await stage.fork("orders--agent", lambda: _cfork(orders, "agent", "mark what looks odd"))
    tell.tell(
        f"Made in {duration(stage.times[-1][1])}, with all {number(ORDERS + 1)} records in it and "
        "none copied. It is continuous: what producers append goes on arriving in it, between "
        "what the agent writes there. Nobody else sees the agent's records."
    )
    began = await orders.tail()

    async def produce() -> None:
        for turn in range(8):
            await orders.append(order(ORDERS + 1 + turn))

    async def mark() -> None:
        for turn in range(4):
            await fork.append(b'{"agent":"order %d looks odd"}' % (turn * 50_021))

    await asyncio.gather(produce(), mark())
    mixed = [each async for each in fork.read(began)]
    plain = [each async for each in orders.read(began)]
    assert [each.value for each in mixed if each.origin_log == orders.id] == [
        each.value for each in plain
    ]
    assert len(mixed) == len(plain) + 4
    tell.tell("The end of the fork, and where each record comes from:")
    tell.show(_table(stage, mixed))
    tell.tell(
        f"`orders` itself ends at {await orders.tail()}, the fork at "
        f"{await fork.tail()}: 4 of its records are its own."
    )


async def what_if(stage: Stage) -> None:
    tell, orders = stage.narrator, stage.orders
    tell.title("What if? A severed fork, from the past")
    tell.command(f"anabranch fork orders discount --at {PAST}")
    fork = await stage.fork("orders--discount", lambda: _sfork(orders, "discount", PAST))
    tell.tell(
        f"Made in {duration(stage.times[-1][1])}. It has the orders before position "
        f"{PAST} and nothing after: history goes on differently from here."
    )
    cheaper = [_decode(each.value or b"") async for each in orders.read(PAST, 1_000)]
    for each in cheaper:
        each["amount"] = each["amount"] * 9 // 10
    await fork.append_many([msgspec.json.encode(each) for each in cheaper])
    was = sum([_decode(each.value or b"")["amount"] async for each in orders.read(PAST, 1_000)])
    then = sum([_decode(each.value or b"")["amount"] async for each in fork.read(PAST, 1_000)])
    assert then < was
    parted = await orders.diff(fork)
    assert parted.shared == PAST
    tell.tell(
        f"1,000 orders replayed at a discount of 10%: {number(was)} became {number(then)}. "
        f"`anabranch diff` says that both are the same up to {parted.shared}; "
        f"{number(_count(parted.only_a))} records are only in orders, "
        f"{number(_count(parted.only_b))} only in the fork."
    )


async def two_plans(stage: Stage) -> None:
    """Two agents plan at the same time; what the right one did becomes the log's own."""
    tell, orders = stage.narrator, stage.orders
    tell.title("Two plans, of which one comes true")
    tail = await orders.tail()
    async with _watched(orders, tail) as seen:
        greedy = await stage.fork("orders--plan-a", lambda: _promotable(orders, "plan-a"))
        careful = await stage.fork("orders--plan-b", lambda: _promotable(orders, "plan-b"))
        tell.command("anabranch fork orders plan-a --promotable  # and plan-b")
        tell.tell(
            f"Two promotable forks, in {duration(stage.times[-2][1])} and "
            f"{duration(stage.times[-1][1])}. Until one is chosen, what follows in `orders` may "
            "still move, and its positions are withheld."
        )
        await orders.append(order(900_001))
        await _plan(greedy, [70, 60])
        await _plan(careful, [40, 60])
        late = await orders.append(order(900_002))
        assert late.position is None
        assert late.receipt is not None
        tell.tell(
            "A producer appends an order meanwhile: it is durable, and gets a receipt instead of "
            "a position. A plain read past the forks' point waits, then says who is in the way:"
        )
        tell.show([await _blocked_read(orders, tail)])
        await tell.pause()
        verdicts = [(plan, await _shipped(plan, tail)) for plan in (greedy, careful)]
        for plan, shipped in verdicts:
            verdict = "more than there is" if shipped > STOCK else "right"
            tell.tell(f"{plan.name} ships {shipped} of {STOCK} in stock: {verdict}.")
        (chosen,) = (plan for plan, shipped in verdicts if shipped <= STOCK)
        before = len(await seen.until(lambda events: _delivered(events) >= 2))
        began = _now()
        done = await chosen.promote()
        taken = duration((_now() - began) / 1e9)
        tell.command(f"anabranch promote {chosen.name}")
        tell.tell(
            f"Promoted in {taken}: its {done.records} records are now in {done.into}, and "
            f"{', '.join(done.squashed)} is squashed."
        )
        position = await late.receipt.position(timeout=30)
        tell.tell(f"The producer's receipt turns into position {position}.")
        events = await seen.until(lambda events: _settled_after(events, position))
        tell.tell("Who subscribed to `orders` all the while saw this:")
        tell.show(_events(events, before))
        final = [each.value async for each in orders.read(tail)]
        assert _replayed(events) == final


async def overview(stage: Stage) -> None:
    tell = stage.narrator
    tell.title("What is there now")
    tell.command("anabranch tree orders")
    logs = [each async for each in stage.service.logs(tree="orders")]
    forks = by_parent(logs)
    for line in drawn(forks[None][0], forks, _now()):
        tell.console.print(line, soft_wrap=True)
    tell.tell("How long each fork took, of a log of 200,000 records:")
    tell.show([f"{name:26} {duration(seconds):>8}" for name, seconds in stage.times])


@dataclass(slots=True)
class Seen:
    """The events of a subscription, as they came."""

    events: list[Event] = field(default_factory=list[Event])
    more: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def until(self, enough: Callable[[list[Event]], bool]) -> list[Event]:
        async with asyncio.timeout(30), self.more:
            await self.more.wait_for(lambda: enough(self.events))
        return list(self.events)


@asynccontextmanager
async def _watched(log: Log, start: int) -> AsyncGenerator[Seen]:
    seen = Seen()

    async def watch() -> None:
        async with log.subscribe(start, speculative=True) as events:
            async for event in events:
                async with seen.more:
                    seen.events.append(event)
                    seen.more.notify_all()

    watching = asyncio.ensure_future(watch())
    try:
        yield seen
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def order(turn: int) -> bytes:
    return b'{"order":%d,"customer":"c%03d","amount":%d}' % (
        turn,
        turn * 7919 % 1000,
        10 + turn % 90,
    )


def _cfork(log: Log, name: str, why: str) -> "asyncio.Future[Log]":
    return asyncio.ensure_future(log.cfork(name, why=why))


def _sfork(log: Log, name: str, before: int) -> "asyncio.Future[Log]":
    return asyncio.ensure_future(log.sfork(name, past=before - 1, why="what if all was cheaper?"))


def _promotable(log: Log, name: str) -> "asyncio.Future[Log]":
    return asyncio.ensure_future(log.cfork(name, promotable=True, why="ship from stock"))


async def _plan(fork: Log, amounts: Sequence[int]) -> None:
    for amount in amounts:
        await fork.append(b'{"ship":%d,"by":"%s"}' % (amount, fork.name.encode()))


async def _shipped(fork: Log, start: int) -> int:
    """Validate a plan by replaying it: what does it take from stock in all?"""
    taken = [_decode(each.value or b"").get("ship", 0) async for each in fork.read(start)]
    return sum(taken)


async def _blocked_read(log: Log, start: int) -> str:
    try:
        async for _ in log.read(start, timeout=0.2):
            raise AssertionError("nothing past an undecided fork may be read")
    except ReadBlocked as blocked:
        return blocked.message
    return f"nothing can be read at {start} yet"


def _count(ranges: Sequence[tuple[int, int]]) -> int:
    return sum(end - start for start, end in ranges)


def _table(stage: Stage, records: Sequence[LogRecord]) -> list[str]:
    return [f"{each.position:>7}  {stage.origin(each):22}  {shown(each.value)}" for each in records]


def _delivered(events: Sequence[Event]) -> int:
    return sum(isinstance(event, Deliver) for event in events)


def _settled_after(events: Sequence[Event], position: int) -> bool:
    """Is the record at this position delivered for good?"""
    return any(
        isinstance(event, Deliver) and not event.speculative and event.record.position == position
        for event in events
    )


def _replayed(events: Sequence[Event]) -> list[bytes | None]:
    """What a subscriber that did as it was told now holds."""
    held: dict[int, bytes | None] = {}
    for event in events:
        match event:
            case Deliver(record):
                held[record.position] = record.value
            case Fail(since):
                held = {at: value for at, value in held.items() if at < since}
            case Confirm():
                pass
    return list(held.values())


def _events(events: Sequence[Event], before: int) -> list[str]:
    lines: list[str] = []
    for turn, event in enumerate(events):
        if turn == before:
            lines.append("-- the promotion --")
        match event:
            case Deliver(record, speculative):
                mark = "speculative" if speculative else "final"
                lines.append(f"{mark:11} {record.position:>7}  {shown(record.value)}")
            case Confirm(up_to):
                lines.append(f"confirmed   below {up_to}")
            case Fail(since):
                lines.append(f"failed      from {since} on: forget these")
    return lines
