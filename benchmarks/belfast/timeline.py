"""Latencies over a run's time: before something happens in its middle, and after."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from statistics import fmean

from anabranch.apps.processes.local_log import LocalLog
from benchmarks.belfast.deployment import Setting
from benchmarks.belfast.usage import Usage, used
from benchmarks.belfast.workload import Latencies, Load, Run, connected
from benchmarks.timing import mean

Sampled = Sequence[tuple[int, float]]
_S = 1_000_000_000


def between(of: Sampled, low_s: float, high_s: float) -> float:
    """The mean of what was begun then, in seconds from the run's beginning."""
    return mean(took for begun, took in of if low_s * _S <= begun < high_s * _S)


def curve(of: Sampled, step_s: float) -> list[tuple[float, float]]:
    """Means step by step."""
    steps: dict[int, list[float]] = {}
    for begun, took in of:
        steps.setdefault(int(begun / _S / step_s), []).append(took)
    return [(step * step_s, fmean(each)) for step, each in sorted(steps.items())]


async def disturbed(
    local: LocalLog,
    setting: Setting,
    load: Load,
    at_s: float,
    disturb: Callable[[Run], Awaitable[None]],
    settled_s: float = 0.0,
) -> tuple[Latencies, Usage, Usage]:
    """One run in whose middle something happens, so many seconds after its warm-up; what was used
    before that, and from when it has settled.
    """
    marks: list[Usage] = []

    def mark() -> None:
        marks.append(used(local))

    async with connected(local.layout.url, setting.delay_us) as log:
        run = Run(log, list(local.shards), load)

        async def later() -> None:
            await asyncio.sleep(load.warm_s + at_s)
            await asyncio.to_thread(mark)
            await asyncio.gather(disturb(run), settled())

        async def settled() -> None:
            await asyncio.sleep(settled_s)
            await asyncio.to_thread(mark)

        task = asyncio.create_task(later())
        found = await run.measured(mark)
        await task
        mark()
    begun, disturbing, settled_by, end = marks
    return found, disturbing - begun, end - settled_by
