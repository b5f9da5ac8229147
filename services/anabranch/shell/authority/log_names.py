"""`Catalogue` of a process that serves the logs: it asks its own machine, as a client would."""

from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.bolt.protocol.messages import Describe
from anabranch.core.types import LogId
from anabranch.shell.runtime.driver import Host
from anabranch.shell.server.local import Local


class OwnLogs:
    def __init__(self, host: Host, node: str) -> None:
        self._host = host
        self._node = node
        self._local: Local | None = None

    async def describe(self, log: LogId | str) -> Description:
        # There is a seat only once the machine lives.
        if self._local is None:
            self._local = Local(self._host, self._node)
        found = await self._local.call(Describe(log))
        assert isinstance(found, Description)
        return found
