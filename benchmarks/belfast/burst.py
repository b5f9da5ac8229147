"""Figure 10: a burst at one of two shards, with lag fix and without."""

import asyncio

from msgspec.structs import replace

from benchmarks.belfast.compare import alternating, notes
from benchmarks.belfast.deployment import Setting, running
from benchmarks.belfast.timeline import Sampled, between, curve, disturbed
from benchmarks.belfast.workload import Load, Run
from benchmarks.report import Chart, Found, Line, row, versus
from benchmarks.size import Size

SETTING = Setting(rules={"quota_change": False, "first_quota": 6})
LOAD = Load(appenders=3, rate=100.0, compute_ms=16.0, run_s=8.0)
BURST_RECORDS = 60
"""Ten quotas at once, as the paper's 30 records at a quota of 3."""
AT_S = 3.0
AFTER_S = (0.5, 4.5)
"""When the burst should be over."""
ROUNDS = 5


def run(size: Size) -> Found:
    count = size.of(ROUNDS, 1)
    load = replace(LOAD, warm_s=1.0, run_s=5.0) if size.smoke else LOAD
    systems = {
        "Belfast": SETTING,
        "no lag fix": replace(SETTING, rules={**SETTING.rules, "lag_fix": False}),
        "Scalog": replace(SETTING, free_will=True),
    }
    found: dict[str, list[Sampled]] = {name: [] for name in systems}
    for name, setting in alternating(count, systems):
        with running(setting) as local:
            latencies, _, _ = asyncio.run(disturbed(local, setting, load, AT_S, _burst))
            found[name].append(latencies.end_to_end)
    warm = load.warm_s
    before = {name: _of(runs, warm, warm + AT_S - 0.2) for name, runs in found.items()}
    during = {name: _of(runs, warm + AT_S, warm + AT_S + 0.5) for name, runs in found.items()}
    after = {
        name: _of(runs, warm + AT_S + AFTER_S[0], warm + AT_S + AFTER_S[1])
        for name, runs in found.items()
    }
    rows = [
        versus(
            "after the burst, Belfast's end to end",
            after["Belfast"],
            "ms",
            "before it",
            before["Belfast"],
            at_most=1.2,
        ),
        versus(
            "after the burst, without lag fix",
            after["no lag fix"],
            "ms",
            "with it",
            after["Belfast"],
            at_least=1.2,
        ),
        versus(
            "after the burst, Scalog's end to end",
            after["Scalog"],
            "ms",
            "Belfast's",
            after["Belfast"],
            at_least=1.0,
        ),
        *(row(f"{name}: before the burst", before[name], "ms") for name in systems),
        *(row(f"{name}: in its half second", during[name], "ms") for name in systems),
    ]
    lines = [Line(name, curve(runs[-1], 0.25)) for name, runs in found.items()]
    chart = Chart(
        title="A burst at one shard (figure 10)",
        x="seconds",
        y="end to end latency, ms",
        lines=lines,
    )
    beside = f"a burst of {BURST_RECORDS} records, ten quotas of one shard; quotas stay as they are"
    return Found(rows, [chart], [*notes(SETTING, LOAD, count), beside])


async def _burst(run: Run) -> None:
    await run.burst("shard-0", BURST_RECORDS)


def _of(runs: list[Sampled], low_s: float, high_s: float) -> list[float]:
    return [between(each, low_s, high_s) for each in runs]
