"""The service of each engine: the one place of the server that knows which engines there are."""

from collections.abc import Mapping

from msgspec.structs import replace

from anabranch.core.belfast.protocol import messages as belfast_messages
from anabranch.core.belfast.protocol.clients import BELFAST
from anabranch.core.belfast.protocol.messages import BELFAST_VERSION, Directory
from anabranch.core.belfast.protocol.rights import BelfastRights
from anabranch.core.bolt.protocol import messages as bolt_messages
from anabranch.core.bolt.protocol.clients import BOLT
from anabranch.core.bolt.protocol.messages import PROTOCOL_VERSION
from anabranch.core.bolt.protocol.rights import BoltRights
from anabranch.core.bolt.state.catalogue import ENGINES
from anabranch.core.limits import Limits
from anabranch.core.rights.claims import LOGS, Subject
from anabranch.ports import Authority
from anabranch.shell.runtime.driver import Host
from anabranch.shell.server.append_limits import AppendLimits
from anabranch.shell.server.service import Service


def bolt_service(
    host: Host, node: str, limits: Limits, *, cluster: str, version: str, authority: Authority
) -> Service:
    """A broker."""
    welcome = bolt_messages.Welcome(
        PROTOCOL_VERSION,
        cluster,
        version,
        limits.record_bytes_max,
        limits.batch_bytes_max,
        limits.batch_records_max,
        ENGINES,
    )
    return Service(BOLT, host, node, welcome=welcome, authority=authority, rights=BoltRights())


def belfast_service(  # noqa: PLR0913  # all but three have a name
    host: Host,
    node: str,
    limits: Limits,
    *,
    cluster: str,
    version: str,
    authority: Authority,
    log: Subject | None = None,
    name: str = "",
    hosts: Mapping[str, str] | None = None,
    append_limits: AppendLimits | None = None,
) -> Service:
    """A sequencer or a replica of a shard.

    `log`: the resource whose rights clients need, by default the log that is called as the cluster.
    `hosts`: where other nodes were met last, which clients are told with the nodes' names.
    `append_limits`: the log's quota, which its shards don't know.
    """
    welcome = belfast_messages.Welcome(
        BELFAST_VERSION, cluster, node, version, limits.batch_bytes_max, limits.batch_records_max
    )

    service = Service(
        BELFAST,
        host,
        node,
        welcome=welcome,
        authority=authority,
        rights=BelfastRights(log or Subject(LOGS, cluster)),
        name=name,
        completions={Directory: _WithHosts(hosts)} if hosts is not None else {},
    )
    service.append_limits = append_limits
    return service


class _WithHosts:
    """Adds where nodes were met last; as long as nothing has changed, the same reply again."""

    def __init__(self, hosts: Mapping[str, str]) -> None:
        self._hosts = hosts
        self._plain: Directory | None = None
        self._completed: Directory | None = None

    def __call__(self, directory: Directory) -> Directory:
        completed = self._completed
        if completed is None or directory is not self._plain or completed.hosts != self._hosts:
            self._plain = directory
            self._completed = completed = replace(directory, hosts=dict(self._hosts))
        return completed
