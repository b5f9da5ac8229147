"""`Catalogue` of Bolt's logs: the resource of each, as its description says."""

from typing import Protocol

from anabranch.core.bolt.protocol.clients import BOLT
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.bolt.protocol.messages import Describe
from anabranch.core.bolt.protocol.rights import subject_of
from anabranch.core.errors import Promoted, Squashed, UnknownLog
from anabranch.core.rights.claims import Subject
from anabranch.core.types import LogId
from anabranch.shell.runtime.driver import Host
from anabranch.shell.server.local import Local


class Describer(Protocol):
    async def describe(self, log: LogId | str) -> Description: ...


class LogSubjects:
    """`Catalogue` over anything that describes logs."""

    def __init__(self, logs: Describer) -> None:
        self._logs = logs

    async def subject(self, log: LogId | str) -> Subject | None:
        """None: the log is gone for good. An unknown id is refused as such, because a log with that
        id may yet be created.
        """
        try:
            return subject_of(await self._logs.describe(log))
        except UnknownLog:
            if isinstance(log, str):
                return None
            raise
        except (Promoted, Squashed):
            return None


class OwnLogs:
    """`Describer` of a process that serves the logs: it asks its own machine, as a client would."""

    def __init__(self, host: Host, node: str) -> None:
        self._host = host
        self._node = node
        self._local: Local | None = None

    async def describe(self, log: LogId | str) -> Description:
        # A seat can be taken only once the machine runs.
        if self._local is None:
            self._local = Local(self._host, self._node, BOLT)
        found = await self._local.call(Describe(log))
        assert isinstance(found, Description)
        return found
