"""Figure 17: a sequencing replica is killed under load, and appends flow again."""

import asyncio
from dataclasses import dataclass, field

from benchmarks.erwin.compare import ROUNDS
from benchmarks.erwin.deployment import Deployment, Setting, running
from benchmarks.erwin.workload import ErwinClient, Load, MeasuredClient, Run, clients, on_loop
from benchmarks.report import Chart, Found, Line, Row, row
from benchmarks.size import Size
from benchmarks.timing import now

SETTING = Setting(delay_us=500)
LOAD = Load(clients=4, rate=100.0, run_s=2.5)
KILL_S = 1.0
"""After the beginning."""
READ_PAUSE_S = 0.005
FLOW_BAR_MS, CORE_BAR_MS, READ_BAR_MS = 100.0, 10.0, 100.0
LEADER, FOLLOWER = "the leader", "a follower"
MS = 1e6


@dataclass(slots=True)
class _Course:
    """Times in ns."""

    killed: int = 0
    sealed: int = 0
    """The controller has missed the replica, and sent the first seal."""
    started: int = 0
    acknowledged: list[int] = field(default_factory=list[int])
    reads: list[tuple[int, float]] = field(default_factory=list[tuple[int, float]])
    """When each began, and the ms that it took."""

    @property
    def detected_ms(self) -> float:
        return (self.sealed - self.killed) / MS

    @property
    def core_ms(self) -> float:
        return (self.started - self.sealed) / MS

    @property
    def flow_ms(self) -> float:
        """From the detection to the first acknowledgement."""
        return (min(at for at in self.acknowledged if at > self.sealed) - self.sealed) / MS

    @property
    def slowest_read_ms(self) -> float:
        """Of those under way between the kill and the first append after it."""
        end = self.sealed + self.flow_ms * MS
        return max(took for at, took in self.reads if self.killed <= at <= end)


def run(size: Size) -> Found:
    count = size.of(ROUNDS, 1)
    rows: list[Row] = []
    lines: list[Line] = []
    for whom in (LEADER, FOLLOWER):
        courses = [_killed(whom) for _ in range(count)]
        rows += _rows(whom, courses)
        lines.append(Line(f"{whom} killed", _curve(courses[-1])))
    chart = Chart(
        title="Appends while a sequencing replica dies (figure 17)",
        x="seconds",
        y="appends acknowledged in 50 ms",
        lines=lines,
    )
    return Found(rows, [chart], _notes(count))


def _killed(whom: str) -> _Course:
    with running(SETTING) as deployment:
        return on_loop(_struck(deployment, whom))


async def _struck(deployment: Deployment, whom: str) -> _Course:
    course = _Course()
    load = LOAD
    async with clients(deployment, load.clients + 1, load.record_bytes) as (reader, *appenders):
        await reader.append()
        run = Run(appenders, load, deployment.used)
        reading = asyncio.create_task(_read(reader, course))
        measured = asyncio.create_task(run.measured())
        await asyncio.sleep(KILL_S)
        assert isinstance(reader, ErwinClient)
        view = await reader.log.directory()
        leads = (view.leader,)
        chosen = next(each for each in view.members if (each in leads) == (whom == LEADER))
        course.killed = now()
        await asyncio.to_thread(deployment.sequencer(chosen).kill)
        found = await measured
        reading.cancel()
        course.acknowledged = [run.begins + at for at in found.ended]
    (controller,) = deployment.controllers
    course.sealed, ends = min(
        (at, view)
        for kind, view, at in controller.view_changes()
        if kind == "seal" and at > course.killed
    )
    course.started = min(
        at for kind, view, at in controller.view_changes() if kind == "start" and view > ends
    )
    return course


async def _read(reader: MeasuredClient, course: _Course) -> None:
    """The first record, again and again: it is stable."""
    while True:
        begun = now()
        await reader.read(0)
        course.reads.append((begun, (now() - begun) / MS))
        await asyncio.sleep(READ_PAUSE_S)


def _rows(whom: str, courses: list[_Course]) -> list[Row]:
    return [
        row(f"{whom} killed: until it is missed", [e.detected_ms for e in courses], "ms"),
        row(
            f"{whom} killed: from then on, until appends flow",
            [e.flow_ms for e in courses],
            "ms",
            at_most=FLOW_BAR_MS,
        ),
        row(
            f"{whom} killed: of that, from the seal to the start of the view",
            [e.core_ms for e in courses],
            "ms",
            at_most=CORE_BAR_MS,
        ),
        row(
            f"{whom} killed: slowest read of a stable position meanwhile",
            [e.slowest_read_ms for e in courses],
            "ms",
            at_most=READ_BAR_MS,
        ),
    ]


def _curve(course: _Course) -> list[tuple[float, float]]:
    """From half a second before the kill on."""
    bucket_ns, first = 50_000_000, course.killed - 500_000_000
    counts: dict[int, int] = {}
    for at in course.acknowledged:
        bucket = (at - first) // bucket_ns
        counts[bucket] = counts.get(bucket, 0) + 1
    return [(each * 0.05 - 0.5, counts.get(each, 0)) for each in range(40)]


def _notes(count: int) -> list[str]:
    how = (
        f"3 sequencers and a controller, 1 shard of {SETTING.copies} replicas, durability "
        f"{SETTING.durability}, {SETTING.delay_us} us one way for every message; {LOAD.clients} "
        f"closed loops of at most {LOAD.rate:g} appends/s, and a reader of a stable position "
        f"every {READ_PAUSE_S * 1_000:g} ms; SIGKILL; {count} rounds of each"
    )
    silence = (
        f"a node is missed after {SETTING.limits.silent_ms} ms of silence (`silent_ms`), which "
        f"began up to {SETTING.limits.present_ms} ms before the kill; the times are the "
        "controller's, as it sends the first seal and the first start"
    )
    paper = (
        "the paper: a gap of 15 ms, most of it detection by ZooKeeper; flush and the rest 0.6 ms"
    )
    return [how, silence, paper]
