"""Figure 11: more load at one of two shards for good, with quotas that change and without."""

import asyncio

from msgspec.structs import replace

from benchmarks.belfast.compare import alternating, notes
from benchmarks.belfast.deployment import Setting, running
from benchmarks.belfast.timeline import between, curve, disturbed
from benchmarks.belfast.usage import Usage
from benchmarks.belfast.workload import Latencies, Load, Run
from benchmarks.report import Chart, Found, Line, row, versus
from benchmarks.size import Size

SETTING = Setting(rules={"first_quota": 4})
LOAD = Load(appenders=2, rate=100.0, compute_ms=16.0, run_s=14.0)
AT_S = 4.0
SETTLED_S = 5.0
"""After the change, before what follows is looked at: two windows of 100 T_ord, and some."""
MORE = 3
"""Appenders at the first shard, beside those that are there."""
ROUNDS = 5


def run(size: Size) -> Found:
    count = size.of(ROUNDS, 1)
    load = replace(LOAD, warm_s=1.0, run_s=7.0) if size.smoke else LOAD
    settled_s = size.of(SETTLED_S, 1.0)
    systems = {
        "Belfast": SETTING,
        "quotas kept": replace(SETTING, rules={**SETTING.rules, "quota_change": False}),
        "Scalog": replace(SETTING, free_will=True),
    }
    found: dict[str, list[tuple[Latencies, Usage, Usage]]] = {name: [] for name in systems}
    for name, setting in alternating(count, systems):
        with running(setting) as local:
            course = disturbed(local, setting, load, AT_S, _more, settled_s)
            found[name].append(asyncio.run(course))
    rows = [
        row(
            "Belfast: no-ops beside records, at the steady load before",
            [100 * usage.noops / usage.records for _, usage, _ in found["Belfast"]],
            "%",
            at_most=5.0,
        ),
        row(
            "Belfast: no-ops beside records, after quotas have followed",
            [100 * usage.noops / usage.records for _, _, usage in found["Belfast"]],
            "%",
            at_most=5.0,
        ),
    ]
    rows += [
        row(
            f"{name}: no-ops beside records, after the change",
            [100 * usage.noops / usage.records for _, _, usage in runs],
            "%",
        )
        for name, runs in found.items()
        if name == "quotas kept"
    ]
    rows.append(
        versus(
            "quotas kept: cuts a second after the change",
            [usage.cuts / (usage.at / 1e9) for _, _, usage in found["quotas kept"]],
            "/s",
            "Belfast's",
            [usage.cuts / (usage.at / 1e9) for _, _, usage in found["Belfast"]],
            at_least=1.5,
        )
    )
    low = load.warm_s + AT_S + settled_s
    after = {
        name: [between(each.end_to_end, low, load.warm_s + load.run_s) for each, _, _ in runs]
        for name, runs in found.items()
    }
    for name in ("quotas kept", "Scalog"):
        against = after["Belfast"]
        named = f"{name}: end to end after the change"
        rows.append(versus(named, after[name], "ms", "Belfast's", against, at_least=1.0))
    beside = "the paper: without quota change twice the sequencer's load, no-ops below 5% with it"
    chart = Chart(
        title="More load at one shard for good (figure 11)",
        x="seconds",
        y="end to end latency, ms",
        lines=[Line(name, curve(runs[-1][0].end_to_end, 0.5)) for name, runs in found.items()],
    )
    return Found(rows, [chart], [*notes(SETTING, LOAD, count), beside])


async def _more(run: Run) -> None:
    await run.join("shard-0", MORE, LOAD.rate)
