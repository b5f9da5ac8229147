"""`anabranch gateway`: HTTP before a pool of brokers. It keeps nothing, and any number may run."""

import asyncio
import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from importlib.metadata import version
from pathlib import Path

import uvloop

from anabranch.apps import process
from anabranch.apps.asgi import http_server, probe_server
from anabranch.apps.http import application
from anabranch.apps.http.context import FrontSettings
from anabranch.apps.http.entry import Door
from anabranch.apps.own_client import WINDOW_BYTES
from anabranch.apps.pods.bolt_settings import GatewaySettings
from anabranch.apps.pods.pod import Endpoint
from anabranch.apps.pods.probe import Probes, Readiness
from anabranch.apps.pods.remote import Remote
from anabranch.client.bolt.link import Link
from anabranch.client.session.endpoint import endpoint
from anabranch.client.session.settings import Settings
from anabranch.core.bolt.protocol.messages import Survey
from anabranch.core.bolt.protocol.queries import Census
from anabranch.core.errors import AnabranchError
from anabranch.ports import Authority
from anabranch.shell.authority.log_names import LogSubjects
from anabranch.shell.authority.open import by_kubernetes
from anabranch.shell.authority.settings import AuthMode
from anabranch.shell.authority.shared import SharedToken
from anabranch.shell.authority.tokens import Tokens
from anabranch.shell.net import tls
from anabranch.shell.runtime.allocator import keep_memory
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.server.budgets import Budgets
from anabranch.shell.telemetry.log import Log

KIND = "gateway"
_LOOK_S = 0.5
"""How long a gateway that no broker lets in any more may go on refusing before it ends."""


async def serve(
    settings: GatewaySettings,
    ready: Callable[[Endpoint], None] | None = None,
    *,
    front: FrontSettings | None = None,
    stop: asyncio.Event | None = None,
) -> None:
    """Run until `stop` is set or, if none is given, until a signal says so."""
    log = Log(Clock().now, settings.log_format)
    release = version("anabranch")
    stop = stop or process.signalled()
    async with AsyncExitStack() as stack:
        link = _link(settings)
        stack.callback(link.close)
        link.start()
        cluster = await _met(link, settings, log)
        tokens = Tokens(settings.token, settings.tokens_file, log)
        remote = Remote(link, settings.limits, log, version=release, token=tokens)
        stack.push_async_callback(remote.close)
        authority = _authority(settings, remote, log, stack, tokens)
        limits = settings.limits
        budgets = Budgets(limits, process.connections_max(limits.connections_max))
        door = application(remote, front, authority, budgets)
        probes = await _probed(settings, door, stack)
        server = http_server(door, tls.listening(settings.tls, log), budgets)
        port = await process.bound(server.start, settings.host, settings.http_port)
        stack.push_async_callback(server.stop)
        address = process.address(settings.host, port)
        found = Endpoint(KIND, settings.name, address, address, probes or address, os.getpid())
        if settings.announce:
            stack.callback(process.announce(Path(settings.announce), found, log))
        log.info("serving", kind=KIND, name=settings.name, cluster=cluster, http=address)
        if ready is not None:
            ready(found)
        ended = await _until_over(link, stop)
        log.info("stopping")
    if ended is not None:
        raise ended


def _authority(
    settings: GatewaySettings, remote: Remote, log: Log, stack: AsyncExitStack, tokens: Tokens
) -> Authority:
    if settings.auth.mode is AuthMode.TOKEN:
        return SharedToken(tokens)
    warden = by_kubernetes(settings.auth, LogSubjects(remote), log)
    stack.push_async_callback(warden.close)
    remote.counters["authority"] = warden.counters
    return warden


async def _probed(settings: GatewaySettings, door: Door, stack: AsyncExitStack) -> str | None:
    """Where probes are answered that have neither token nor TLS, if they are."""
    if settings.probe_port < 0:
        return None
    front, name = door.front, settings.name
    probes = Probes(
        failed=lambda: _complaint(front.backend.check_alive),
        readiness=lambda: Readiness(
            name, KIND, [why for why in (_complaint(front.backend.check_ready),) if why]
        ),
        metrics=front.metrics,
    )
    server = probe_server(probes)
    port = await process.bound(server.start, settings.host, settings.probe_port)
    stack.push_async_callback(server.stop)
    return process.address(settings.host, port)


def _complaint(check: Callable[[], None]) -> str | None:
    try:
        check()
    except AnabranchError as error:
        return error.message
    return None


def _link(settings: GatewaySettings) -> Link:
    where = endpoint(settings.service)
    limits = settings.limits
    token = settings.service_token or where.token
    chosen = Settings(
        client=settings.name,
        token=token,
        pending_bytes_max=limits.queue_bytes_max,
        window_bytes=WINDOW_BYTES,
    )
    return Link(where, chosen)


async def _met(link: Link, settings: GatewaySettings, log: Log) -> str:
    """The cluster's name, once a broker has told it."""
    log.info("looking for brokers", service=str(link.endpoint))
    census = await link.ask(Survey(), Census, "meet a broker", settings.patience_ms)
    return census.cluster


async def _until_over(link: Link, stop: asyncio.Event) -> AnabranchError | None:
    """Why no broker will have us, if that is why."""
    while link.session.ended is None:
        try:
            async with asyncio.timeout(_LOOK_S):
                await stop.wait()
        except TimeoutError:
            continue
        return None
    return link.session.ended


def main(settings: GatewaySettings) -> None:
    """What a command starts: the process is the gateway's alone."""
    keep_memory()
    process.prepare(settings.limits.connections_max)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(settings))
