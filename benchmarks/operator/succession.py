"""How long nobody acts when the operator that does is killed."""

import asyncio

from tests.operator.running import Operator, running, until_one_leads

from benchmarks.cluster.cores import prefer
from benchmarks.operator.installation import Installation, installed
from benchmarks.report import Chart, Found, Line, row
from benchmarks.size import Size
from benchmarks.timing import now

_BAR_S = 20
_ENDS_S = 120


def run(size: Size) -> Found:
    with installed(size.of(3, 2)) as installation:
        operators = [installation.operator(name) for name in ("first", "second")]
        with running(*operators):
            prefer(*(each.process.pid for each in operators))
            rounds = range(size.of(5, 1))
            killed = [_round(installation, operators, number) for number in rounds]
    rows = [row("operator killed, until a Fork applied then is Ready", killed, "s", at_most=_BAR_S)]
    lines = [Line("killed", [(number, took) for number, took in enumerate(killed)])]
    chart = Chart(title="The operator killed", x="round", y="s", lines=lines)
    return Found(rows, [chart], ["a Lease of 15 s, looked at every 2 s"])


def _round(installation: Installation, operators: list[Operator], number: int) -> float:
    leader = until_one_leads(*operators)
    took = asyncio.run(_takeover(installation, leader, number))
    # Here, because it ends with the thread that has started it.
    leader.start()
    prefer(leader.process.pid)
    return took


async def _takeover(installation: Installation, leader: Operator, number: int) -> float:
    async with installation.user() as user, asyncio.timeout(_ENDS_S):
        await user.declare_log()
        await user.fork(f"before-{number}")
        began = now()
        leader.process.kill()
        await user.fork(f"after-{number}")
        return (now() - began) / 1e9
