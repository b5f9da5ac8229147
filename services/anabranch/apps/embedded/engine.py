"""What the embedded logs of a process must know of an engine to run its logs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from anabranch.apps.embedded.folders import Folders, LogFolder
from anabranch.apps.embedded.losses import JournalRules
from anabranch.apps.node_machine import NodeMachine
from anabranch.core.bolt.protocol.commands import EngineSettings
from anabranch.core.limits import Limits
from anabranch.core.rights.claims import LOGS, Subject
from anabranch.core.types import Nanoseconds
from anabranch.core.wire.client_protocol import ClientProtocol
from anabranch.ports import Authority, RecordJournal
from anabranch.shell.runtime.driver import Host
from anabranch.shell.server.append_limits import AppendLimits
from anabranch.shell.server.frame_server import FrameServer
from anabranch.shell.server.service import Service
from anabranch.shell.telemetry.log import Log


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the embedded logs of a process share with it."""

    cluster: str
    release: str
    limits: Limits
    now: Callable[[], Nanoseconds]
    log: Log
    server: FrameServer
    authority: Authority
    folders: Folders | None
    """None: journals are kept in memory."""
    bolt: tuple[Host, str]
    """The host of the process's Bolt, and the name of its broker there."""
    kafka_file: str = ""
    """Says how Kafka clusters are reached that keep records of logs (`shell/kafka/access.py`)."""
    accept_loss: bool = False
    """Begin logs anew whose journals are gone, instead of not serving them."""


@dataclass(frozen=True, slots=True)
class LogContext:
    """One log, as the machines of its nodes are made for it."""

    folder: LogFolder
    settings: EngineSettings
    around: Surroundings
    append_limits: AppendLimits
    """The log's quota, which machines don't know."""

    @property
    def subject(self) -> Subject:
        """The resource whose rights clients need."""
        return Subject(LOGS, self.folder.log)

    def service(self, serve: Callable[..., Service], node: str, host: Host) -> Service:
        """One node as clients reach it. `serve`: makes it for the kind of node that it is."""
        around = self.around
        return serve(
            host,
            node,
            around.limits,
            cluster=around.cluster,
            version=around.release,
            authority=around.authority,
            log=self.subject,
            name=node,
            append_limits=self.append_limits,
        )

    @property
    def durable(self) -> bool:
        """Journals outlive the process."""
        return self.around.folders is not None


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a log: a machine with a journal of its own."""

    name: str
    """The name by which other nodes and clients find it: `/LOG/ROLE`."""
    recover: Callable[[RecordJournal], NodeMachine]
    """Makes the machine from what its journal holds."""
    service: Callable[[Host], Service] | None
    """For its clients; None if it has none."""
    journal: Callable[[], RecordJournal] | None = None
    """Opens its journal, called in a thread; None if that lies in the log's folder."""
    drains: bool = False
    """It holds acknowledged records in memory only: before the log stops, the node has the others
    write down what it can.
    """


class EmbeddedEngine(Protocol):
    @property
    def name(self) -> str:
        """As the catalogue calls it."""
        ...

    @property
    def protocols(self) -> tuple[ClientProtocol, ...]:
        """All that its clients speak."""
        ...

    @property
    def copies(self) -> bool:
        """Clients send each append to several nodes."""
        ...

    @property
    def asks_its_log(self) -> bool:
        """Its machines send letters to a Bolt log of this process."""
        ...

    @property
    def journals(self) -> JournalRules: ...

    def addresses(
        self, folder: LogFolder, settings: EngineSettings
    ) -> Iterator[tuple[ClientProtocol, str]]:
        """The names under which clients ask for this log's nodes, in which protocol."""
        ...

    def nodes(self, context: LogContext) -> Iterator[Node]:
        """All of this log. They are started one after the other."""
        ...
