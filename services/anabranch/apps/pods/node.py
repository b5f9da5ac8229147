"""What every process of a cluster does that runs a machine: it shows its probes, listens, makes its
machine, connects, serves, and drains in the end. What differs is an `Occupant`.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from anabranch.apps import process
from anabranch.apps.node_machine import NodeMachine
from anabranch.apps.pods.pod import Endpoint, Pod
from anabranch.core.errors import AnabranchError
from anabranch.core.machine import Machine
from anabranch.shell.runtime.driver import Host

Ready = Callable[[Endpoint], None] | None
P = TypeVar("P", bound=Pod[Any])


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Place(Generic[P]):
    """A process that listens, and whose machine isn't made yet."""

    pod: P
    listener: socket.socket
    bound: str
    """Where it listens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupant:
    """What one kind of process has of its own."""

    node: str
    """The machine's name on its host."""
    shown: NodeMachine
    machine: Machine
    """What is run: the machine that is shown, or a traced one around it."""
    host: Host
    advertised: str
    """Where others reach it."""
    connect: Callable[[], None] = _nothing
    """Called before the machine starts: from here on its letters go out."""
    listen: Callable[[], Awaitable[None]]
    """Called once the machine has started: take what comes."""
    ends: Sequence[asyncio.Future[AnabranchError]] = ()
    """Done when something beside the machine says that the process must end."""
    check_end: Callable[[], None] = _nothing
    """Raises why the machine rests, if it wasn't told to."""


async def serve_node(
    pod: Callable[[AsyncExitStack, asyncio.Event], P],
    host: str,
    ports: tuple[int, int],
    occupy: Callable[[Place[P]], Awaitable[Occupant]],
    ready: Ready = None,
    *,
    stop: asyncio.Event | None = None,
) -> None:
    """Run until `stop` is set or, if none is given, until a signal says so; then drain."""
    async with AsyncExitStack() as stack:
        made = pod(stack, stop or process.signalled())
        port, probe_port = ports
        await made.serve_probes(probe_port)
        listener = await process.listener(host, port)
        stack.callback(listener.close)
        bound = process.address(*listener.getsockname()[:2])
        occupant = await occupy(Place(made, listener, bound))
        _show(made, occupant)
        occupant.connect()
        occupant.host.start({occupant.node: occupant.machine})
        stack.push_async_callback(occupant.host.stop)
        await occupant.listen()
        endpoint = made.announce(bound, occupant.advertised)
        if ready is not None:
            ready(endpoint)
        await made.until_over(occupant.host, occupant.ends)
        if not made.draining:
            occupant.check_end()


def _show(pod: Pod[Any], occupant: Occupant) -> None:
    shown, vitals = occupant.shown, pod.vitals
    pod.run_host(occupant.host, shown.role)
    if shown.counters is not None:
        vitals.counters[shown.kind] = shown.counters
    vitals.gauges[shown.kind] = shown.gauges
    vitals.obstacles.append(shown.obstacle)
