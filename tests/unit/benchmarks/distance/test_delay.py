"""The longer way: everything arrives, in order, and not before its time."""

import asyncio
import os
from functools import partial

from benchmarks.distance.delay import Delay

PATIENCE_S = 60.0


def test_what_is_put_off_is_done_in_order_and_not_too_early() -> None:
    async def scene() -> None:
        loop = asyncio.get_running_loop()
        delay = Delay(20_000)
        done: list[tuple[int, float]] = []
        over = asyncio.Event()

        def act(nth: int, since: float) -> None:
            done.append((nth, loop.time() - since))
            if nth == 99:
                over.set()

        for nth in range(100):
            delay.after(partial(act, nth, loop.time()))
            if nth % 10 == 0:
                await asyncio.sleep(0)
        assert not done
        await over.wait()
        assert [nth for nth, _ in done] == list(range(100))
        # The loop counts in milliseconds.
        assert min(waited for _, waited in done) >= 0.019

    asyncio.run(asyncio.wait_for(scene(), PATIENCE_S))


def test_no_delay_is_no_detour() -> None:
    async def scene() -> None:
        done: list[int] = []
        Delay(0).after(partial(done.append, 1))
        assert done == [1]

    asyncio.run(scene())


def test_what_waits_when_it_is_stopped_is_dropped() -> None:
    async def scene() -> None:
        delay, other = Delay(1_000), Delay(5_000)
        done: list[int] = []
        over = asyncio.Event()
        delay.after(partial(done.append, 1))
        delay.stop()
        other.after(over.set)
        await over.wait()
        assert done == []

    asyncio.run(asyncio.wait_for(scene(), PATIENCE_S))


def test_a_stopped_delay_holds_no_timer() -> None:
    async def scene() -> None:
        before = len(os.listdir("/proc/self/fd"))
        delays = [Delay(1_000) for _ in range(50)]
        for each in delays:
            each.after(lambda: None)
        assert len(os.listdir("/proc/self/fd")) > before
        for each in delays:
            each.stop()
        assert len(os.listdir("/proc/self/fd")) <= before + 1  # the listing itself

    asyncio.run(scene())
