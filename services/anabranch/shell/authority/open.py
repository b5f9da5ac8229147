"""The authority of a process, from its settings."""

import os
import time
from pathlib import Path

from anabranch.core.errors import BadRequest
from anabranch.core.rights.claims import Subject
from anabranch.core.rights.judge import Judge
from anabranch.core.types import LogId
from anabranch.shell.authority.api import ApiServer
from anabranch.shell.authority.kubernetes import Reviews
from anabranch.shell.authority.reviewer import Catalogue, Warden
from anabranch.shell.authority.settings import AuthSettings
from anabranch.shell.telemetry.log import Log

_HOST, _PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"


class NoCatalogue:
    """For a service whose requests name their resources themselves."""

    async def subject(self, log: LogId | str) -> Subject | None:
        raise AssertionError(f"no claim here is about a log by its id, as {log} is")


def by_kubernetes(settings: AuthSettings, catalogue: Catalogue, log: Log) -> Warden:
    folder = Path(settings.folder)
    review_ms = min(settings.review_ms, settings.deadline_ms)
    server = ApiServer(settings.server or _in_cluster(), folder, review_ms)
    judge = Judge(settings.terms, namespace_of(settings), settings.audience)
    return Warden(
        judge,
        Reviews(server, settings.audience),
        catalogue,
        log,
        now=time.monotonic_ns,
        deadline_ms=settings.deadline_ms,
    )


def _in_cluster() -> str:
    """As every pod is told it."""
    host, port = os.environ.get(_HOST), os.environ.get(_PORT)
    if not host or not port:
        reason = f"{_HOST} and {_PORT} aren't set, so this is no pod: say where the API server is"
        raise BadRequest("auth.server", reason)
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def namespace_of(settings: AuthSettings) -> str:
    """In which logs that no resource declares have their rights."""
    return settings.namespace or _own(Path(settings.folder))


def _own(folder: Path) -> str:
    try:
        return (folder / "namespace").read_text(encoding="utf-8").strip()
    except OSError as error:
        raise BadRequest("auth.namespace", f"it isn't given, and {error}") from None
