"""`anabranch bench`: throughput and latency of this installation, as a client sees them.

It writes to a log of its own, bounded in time and count, and deletes it whatever happens.
"""

import asyncio
from collections.abc import Awaitable
from typing import Any

import click
from msgspec.structs import asdict

from anabranch.cli.bench.load import LOADS, Load, Measured, Meters, Plan, measure
from anabranch.cli.options.service import talks
from anabranch.cli.options.values import DURATION
from anabranch.cli.render.output import Output
from anabranch.cli.render.plot import histogram, save
from anabranch.cli.render.words import duration, number, size
from anabranch.cli.service.target import Target
from anabranch.client.aio import Service
from anabranch.client.bolt.log import Log
from anabranch.shell.runtime.randomness import randbits

_CLEANUP_S = 5.0


@click.command()
@click.option(
    "--seconds",
    type=DURATION,
    default="3s",
    show_default=True,
    help="How long each measurement lasts at most.",
)
@click.option(
    "--count",
    type=click.IntRange(1),
    default=200_000,
    show_default=True,
    help="How many records or forks each measurement makes at most.",
)
@click.option(
    "--size",
    "value_bytes",
    type=click.IntRange(0, 1 << 20),
    default=256,
    show_default=True,
    help="Bytes of a record's value.",
)
@click.option(
    "--only",
    multiple=True,
    type=click.Choice([load.name for load in LOADS]),
    help="Only these measurements.",
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, writable=True),
    help="Draw the latencies into this PNG (needs matplotlib: `pip install anabranch[plot]`).",
)
@talks
def bench(
    *,
    target: Target,
    out: Output,
    seconds: float,
    count: int,
    value_bytes: int,
    only: tuple[str, ...],
    plot: str | None,
) -> None:
    """Measure this installation's throughput and latency.

    Appends records one by one, many at once, and in batches; reads them; forks them. What is
    measured is durable when it is counted.
    """
    chosen = [load for load in LOADS if not only or load.name in only]
    plan = Plan(seconds, count, value_bytes)

    async def work(service: Service) -> list[Measured]:
        name = f"bench-{randbits(48):012x}"
        creation = asyncio.ensure_future(service.create(name, why="anabranch bench"))
        found: list[Measured] = []
        try:
            log = await asyncio.shield(creation)
            with out.progress("measuring", len(chosen) * seconds, "s") as meter:
                for turn, load in enumerate(chosen):

                    def show(
                        spent: float, rate: float, turn: int = turn, load: Load = load
                    ) -> None:
                        meter.reach(turn * seconds + spent, pace=f"{load.what}: {number(rate)}/s")

                    found.append(await measure(load, log, plan, Meters(show)))
        finally:
            # Also when a Ctrl-C has cancelled us: nothing of ours is left behind.
            await asyncio.shield(_delete(service, creation))
        return found

    found = target.run(work)
    if plot is not None:
        save(found, plot)
    if out.json:
        out.document([_document(each) for each in found])
        return
    out.table(
        ["WHAT", ">DONE", ">RATE", ">BYTES", ">P50", ">P90", ">P99", ">MAX"],
        (
            (
                each.what,
                number(each.operations),
                f"{number(each.rate)}/s",
                f"{size(each.bytes_rate)}/s" if each.bytes else "",
                *(duration(each.percentile(p)) for p in (50, 90, 99, 100)),
            )
            for each in found
        ),
    )
    if plot is None:
        out.say("")
        for each in found:
            out.say(histogram(each))
    else:
        out.say(f"latencies are drawn in {plot}")


async def _delete(service: Service, creation: Awaitable[Log]) -> None:
    await service.delete(await creation, force=True, timeout=_CLEANUP_S)


def _document(measured: Measured) -> dict[str, Any]:
    said = asdict(measured)
    del said["latencies_ns"]
    percentiles = {f"p{p}_ms": round(measured.percentile(p) * 1e3, 4) for p in (50, 90, 99, 100)}
    return {**said, "rate": round(measured.rate, 1), **percentiles}
