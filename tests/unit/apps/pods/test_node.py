"""One process of a cluster, whatever machine it runs: its probes, its order of steps, its end."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.unit.shell.nodes import Puppet, run, until

from anabranch.apps.node_machine import NodeMachine
from anabranch.apps.pods.base_settings import ProcessSettings
from anabranch.apps.pods.node import Occupant, Place, serve_node
from anabranch.apps.pods.pod import Endpoint, Pod
from anabranch.core.errors import AnabranchError, Unavailable
from anabranch.core.machine import Drain, Effect, Event, Rest
from anabranch.core.types import Nanoseconds
from anabranch.shell.runtime.driver import Host


class Counters:
    __slots__ = ("cuts",)

    def __init__(self) -> None:
        self.cuts = 7


class Gauges:
    __slots__ = ("leading",)

    def __init__(self) -> None:
        self.leading = 1


class Telling(Puppet):
    """Notes when it was started."""

    def __init__(self, steps: list[str]) -> None:
        super().__init__()
        self._steps = steps

    def start(self, now: Nanoseconds) -> tuple[Effect, ...]:
        self._steps.append("start")
        return ()


def rest_when_drained(event: Event) -> list[Effect]:
    return [Rest()] if isinstance(event, Drain) else []


class Process:
    """A process in this one, which serves a puppet."""

    def __init__(self, folder: Path) -> None:
        self.announced = folder / "endpoint"
        self.settings = ProcessSettings(cluster="c", name="n-0", announce=str(self.announced))
        self.steps: list[str] = []
        self.machine = Telling(self.steps)
        self.machine.rule = rest_when_drained
        self.obstacle: str | None = None
        self.stop = asyncio.Event()
        self.served = asyncio.Event()
        self.endpoint: Endpoint
        self.pod: Pod[ProcessSettings]
        self.host: Host
        self.end: asyncio.Future[AnabranchError] = asyncio.get_running_loop().create_future()
        self.check_end: Callable[[], None] = lambda: None
        self.trouble: AnabranchError | None = None

    async def _occupy(self, place: "Place[Pod[ProcessSettings]]") -> Occupant:
        self.pod = place.pod
        self.steps.append("occupy")
        if self.trouble is not None:
            raise self.trouble
        self.host = Host("c", None, None, now=place.pod.clock.now, log=place.pod.log)

        async def listen() -> None:
            self.steps.append("listen")

        shown = NodeMachine(
            "sequencer",
            self.machine,
            lambda: "leader",
            lambda: self.obstacle,
            Counters(),
            Gauges,
        )
        return Occupant(
            node="n-0",
            shown=shown,
            machine=self.machine,
            host=self.host,
            advertised="n-0.svc:1",
            connect=lambda: self.steps.append("connect"),
            listen=listen,
            ends=(self.end,),
            check_end=lambda: self.check_end(),  # noqa: PLW0108 - tests replace it
        )

    async def serve(self) -> None:
        def ready(endpoint: Endpoint) -> None:
            self.endpoint = endpoint
            self.served.set()

        def pod(stack: AsyncExitStack, stop: asyncio.Event) -> Pod[ProcessSettings]:
            return Pod(self.settings, "sequencer", stack, stop)

        await serve_node(pod, "127.0.0.1", (0, 0), self._occupy, ready, stop=self.stop)

    async def get(self, path: str) -> tuple[int, str]:
        assert self.endpoint.probes is not None
        host, _, port = self.endpoint.probes.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        content = (await reader.read()).decode()
        writer.close()
        head, _, body = content.partition("\r\n\r\n")
        return int(head.split()[1]), body


@asynccontextmanager
async def serving(folder: Path) -> AsyncGenerator[tuple[Process, "asyncio.Task[None]"]]:
    process = Process(folder)
    task = asyncio.ensure_future(process.serve())
    await process.served.wait()
    try:
        yield process, task
    finally:
        process.stop.set()
        await asyncio.gather(task, return_exceptions=True)


def test_letters_go_out_before_the_machine_starts_and_clients_come_in_after(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        async with serving(tmp_path) as (process, _):
            assert process.steps == ["occupy", "connect", "start", "listen"]

    run(scene())


def test_where_it_is_found_is_told_and_taken_back(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path) as (process, task):
            found = json.loads(process.announced.read_bytes())
            assert (found["kind"], found["name"]) == ("sequencer", "n-0")
            assert found["advertised"] == "n-0.svc:1"
            assert found["address"] == process.endpoint.address
            assert found["address"].startswith("127.0.0.1:")
            process.stop.set()
            await task
            assert not process.announced.exists()

    run(scene())


def test_probes_tell_of_the_machine(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path) as (process, _):
            assert (await process.get("/healthz"))[0] == 200
            status, body = await process.get("/readyz")
            found: dict[str, Any] = json.loads(body)
            assert (status, found["ready"], found["role"], found["node"]) == (
                200,
                True,
                "leader",
                "n-0",
            )
            process.obstacle = "no sequencer leads"
            status, body = await process.get("/readyz")
            assert (status, json.loads(body)["why"]) == (503, ["no sequencer leads"])
            assert (await process.get("/healthz"))[0] == 200, "it lives, and is left alone"
            assert (await process.get("/nowhere"))[0] == 404

    run(scene())


def test_what_its_machine_counts_is_in_its_metrics(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path) as (process, _):
            process.pod.vitals.counters.pop("sequencer")
            process.pod.vitals.gauges.pop("sequencer")
            status, body = await process.get("/metrics")
            assert status == 200
            assert "anabranch_host_turns_total" in body
            assert "anabranch_budget_connections" in body

    run(scene())


def test_it_drains_before_it_ends_and_says_so(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path) as (process, task):
            process.machine.rule = lambda _: []
            process.stop.set()
            await until(lambda: any(isinstance(e, Drain) for e in process.machine.events))
            status, body = await process.get("/readyz")
            assert (status, json.loads(body)["why"]) == (503, ["it is draining"])
            assert (await process.get("/healthz"))[0] == 200
            assert not task.done()
            process.machine.rule = rest_when_drained
            process.host.post("n-0", Drain())
            await task

    run(scene())


def test_a_machine_that_fails_ends_the_process_with_its_reason(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path) as (process, task):

            def fail(_: Event) -> list[Effect]:
                raise AssertionError("a rule of the log is broken")

            process.machine.rule = fail
            process.host.post("n-0", Drain())
            with pytest.raises(AnabranchError, match="a rule of the log is broken"):
                await task
            assert not process.announced.exists()

    run(scene())


def test_what_ends_it_from_outside_is_raised(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path) as (process, task):
            process.end.set_result(Unavailable("etcd", "another leader has a later term"))
            with pytest.raises(Unavailable, match="a later term"):
                await task

    run(scene())


def test_a_machine_that_rests_by_itself_may_say_why(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path) as (process, task):

            def why() -> None:
                raise Unavailable("this broker", "the metadata let it go")

            process.check_end = why
            process.host.post("n-0", Drain())
            with pytest.raises(Unavailable, match="let it go"):
                await task

    run(scene())


def test_what_cant_be_occupied_leaves_nothing_behind(tmp_path: Path) -> None:
    async def scene() -> None:
        process = Process(tmp_path)
        process.trouble = Unavailable("the data directory", "another process has it")
        with pytest.raises(Unavailable, match="another process has it"):
            await process.serve()
        assert process.steps == ["occupy"]
        assert not process.announced.exists()

    run(scene())
