"""The thread that does what programs without an event loop ask for, until it is stopped."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor

import pytest

from anabranch.client.driver.loop import LoopThread
from anabranch.core.errors import Unavailable

PATIENCE_S = 20


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    thread = LoopThread()
    yield thread
    thread.stop()


async def answer(value: int) -> int:
    await asyncio.sleep(0)
    return value


def test_what_is_done_is_answered_to_each_of_many_threads(thread: LoopThread) -> None:
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(lambda n: thread.run(answer(n)), number) for number in range(200)]
        assert [each.result(PATIENCE_S) for each in asked] == list(range(200))


def test_what_work_raises_is_raised_to_who_asked(thread: LoopThread) -> None:
    async def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        thread.run(fail())
    assert thread.run(answer(1)) == 1


def test_work_that_was_cancelled_by_itself_says_so(thread: LoopThread) -> None:
    async def cancelled() -> None:
        raise asyncio.CancelledError

    with pytest.raises(CancelledError):
        thread.run(cancelled())


def test_a_loop_is_never_asked_to_wait_for_itself(thread: LoopThread) -> None:
    async def nested() -> None:
        with pytest.raises(AssertionError, match="wait for itself"):
            thread.run(unused)

    unused = answer(1)
    thread.run(nested())
    unused.close()


def test_who_waits_when_the_thread_is_stopped_is_told_that_the_client_was_closed(
    thread: LoopThread,
) -> None:
    """An error of ours: programs catch those."""
    begun, cleaned = threading.Event(), threading.Event()

    async def forever() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: thread.run(forever()))
        assert begun.wait(PATIENCE_S)
        thread.stop()
        with pytest.raises(Unavailable, match="it was closed"):
            waiting.result(PATIENCE_S)
    assert cleaned.is_set()


def test_a_thread_that_was_stopped_does_nothing_more_and_says_so(thread: LoopThread) -> None:
    thread.stop()
    assert thread.closed
    with pytest.raises(Unavailable, match="it was closed"):
        thread.run(answer(1))
    thread.run_last(asyncio.sleep(0))
    thread.stop()


def test_what_is_last_is_done_and_then_all_is_over(thread: LoopThread) -> None:
    done: list[int] = []

    async def last() -> None:
        done.append(await answer(7))

    thread.run_last(last())
    assert done == [7]
    assert thread.closed


def test_what_fails_last_is_raised_and_all_is_over_the_same(thread: LoopThread) -> None:
    async def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        thread.run_last(fail())
    assert thread.closed


@pytest.mark.parametrize("askers", [1, 4])
def test_whoever_asks_while_it_is_stopped_gets_an_answer_or_is_told(askers: int) -> None:
    """Nobody waits for ever, whichever moment of the end the question falls into."""

    def ask(thread: LoopThread) -> int:
        answered = 0
        try:
            while True:
                answered += thread.run(answer(1))
        except Unavailable:
            return answered

    for _ in range(30):
        thread = LoopThread()
        with ThreadPoolExecutor(askers + 2) as pool:
            asked = [pool.submit(ask, thread) for _ in range(askers)]
            stops = [pool.submit(thread.run_last, asyncio.sleep(0)) for _ in range(2)]
            for each in (*stops, *asked):
                each.result(PATIENCE_S)
        assert thread.closed
