"""What is watched, by kopf: its watches come back whatever cuts them, and nothing else of it runs.

Only handlers of raw events are registered, so kopf keeps nothing on objects: no annotations, no
finalizers, no peering, no events. One kopf for each namespace that something is watched in.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any

import kopf

from anabranch.shell.telemetry.log import Log
from anabranch_operator.kube.access import Access, session
from anabranch_operator.kube.resources import RESOURCES
from anabranch_operator.kube.selectors import Watched
from anabranch_operator.plan.engine.objects import Document

SERVER_S, CONNECT_S = 300, 30
CHUNK = 500
WORKERS = 64

OnChange = Callable[[Watched, str | None, Document], None]
"""Of one object: by which watch, ADDED, MODIFIED, DELETED, or nothing in a list, and the object."""


class Watches:
    """They run until they are stopped; one that can't go on raises in `run`."""

    def __init__(
        self,
        access: Access,
        watched: Iterable[Watched],
        told: OnChange,
        begun: Callable[[], None],
        inactivity_s: float,
    ) -> None:
        """`begun`: kopf has begun, and taken the process's signals for itself."""
        self._access = access
        self._told = told
        self._begun = begun
        self._inactivity_s = inactivity_s
        self._by_namespace: dict[str, list[Watched]] = {}
        for each in watched:
            self._by_namespace.setdefault(each.namespace, []).append(each)

    async def run(self) -> None:
        """Each kopf keeps its own in context variables, so each begins in a task of its own."""
        async with asyncio.TaskGroup() as group:
            for namespace, watched in self._by_namespace.items():
                group.create_task(self._run(namespace, watched))

    async def _run(self, namespace: str, watched: list[Watched]) -> None:
        tasks = await kopf.spawn_tasks(
            registry=self._registry(watched),
            settings=self._settings(watched),
            standalone=True,
            clusterwide=not namespace,
            namespaces=[namespace] if namespace else (),
        )
        self._begun()
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    def _registry(self, watched: list[Watched]) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry)(self._login)
        for each in watched:
            resource = RESOURCES[each.kind]
            where = (resource.group, resource.version, resource.plural)
            kopf.on.event(*where, registry=registry, id="told")(self._teller(each))
        return registry

    def _teller(self, watched: Watched) -> Callable[..., Any]:
        async def tell(event: kopf.RawEvent, **_: Any) -> None:
            self._told(watched, event["type"], event["object"])

        return tell

    async def _login(self, **_: Any) -> kopf.AiohttpSession:
        """Its own session, which it closes: the token in it is looked at before each request."""
        return kopf.AiohttpSession(
            server=self._access.server, aiohttp_session=session(self._access)
        )

    def _settings(self, watched: list[Watched]) -> kopf.OperatorSettings:
        settings = kopf.OperatorSettings()
        settings.posting.enabled = False
        settings.scanning.disabled = True
        settings.process.ultimate_exiting_timeout = None
        settings.queueing.worker_limit = WORKERS
        settings.queueing.idle_timeout = 1.0
        settings.networking.enforce_retry_after = True
        settings.networking.connect_timeout = CONNECT_S
        settings.watching.server_timeout = SERVER_S
        settings.watching.client_timeout = SERVER_S + 10
        settings.watching.connect_timeout = CONNECT_S
        settings.watching.inactivity_timeout = self._inactivity_s
        settings.watching.chunk_size = CHUNK
        for each in watched:
            resource = RESOURCES[each.kind]
            where = (resource.group, resource.version, resource.plural)
            if each.labels:
                settings.watching.label_selectors[where] = each.labels
            if each.fields:
                settings.watching.field_selectors[where] = each.fields
        return settings


class _Lines(logging.Handler):
    """What libraries log goes where everything else goes."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        tell = self._log.error if record.levelno >= logging.ERROR else self._log.warning
        error = record.exc_info[1] if record.exc_info else None
        tell("message from a library", by=record.name, what=record.getMessage(), error=repr(error))


def quieten(log: Log) -> None:
    """Libraries' lines from warnings on; kopf tells of every event otherwise."""
    root = logging.getLogger()
    root.handlers = [_Lines(log)]
    root.setLevel(logging.WARNING)
    logging.getLogger("kopf").setLevel(logging.WARNING)
