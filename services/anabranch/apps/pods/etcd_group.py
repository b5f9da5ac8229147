"""One member of a group on etcd: its journal, and the threads that follow it and stand for
election, as the machine on a host is told of them.
"""

import asyncio

from anabranch.core.errors import AnabranchError
from anabranch.core.machine import Event
from anabranch.ports import Journal
from anabranch.shell.etcd.api.client import EtcdClient
from anabranch.shell.etcd.group.coordinator import EtcdCoordinator
from anabranch.shell.etcd.group.election import Candidate
from anabranch.shell.etcd.group.journal import EtcdJournal
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.runtime.driver import Host
from anabranch.shell.telemetry.log import Log


class GroupMember:
    def __init__(
        self,
        client: EtcdClient,
        journal: EtcdJournal,
        candidate: Candidate,
        clock: Clock,
        log: Log,
    ) -> None:
        self.damaged: asyncio.Future[AnabranchError]
        """Done when the journal can be followed no more."""
        loop = self._loop = asyncio.get_running_loop()
        self.damaged = loop.create_future()
        self._journal = journal
        self._host: Host | None = None
        self._node = candidate.name
        self.coordinator = EtcdCoordinator(
            client,
            journal,
            candidate,
            log,
            post=self._post,
            failed=self._failed,
            now=clock.now,
        )

    @property
    def journal(self) -> Journal:
        return self._journal

    def begin(self, host: Host, node: str) -> None:
        """Before the machine asks for anything."""
        self._host, self._node = host, node

    async def close(self) -> None:
        await asyncio.to_thread(self.coordinator.close)
        await asyncio.to_thread(self._journal.close)

    def _post(self, event: Event) -> None:
        assert self._host is not None, "nothing is posted before it is asked for"
        self._host.post_from_thread(self._node, event)

    def _failed(self, error: AnabranchError) -> None:
        self._loop.call_soon_threadsafe(self._set_damaged, error)

    def _set_damaged(self, error: AnabranchError) -> None:
        if not self.damaged.done():
            self.damaged.set_result(error)
