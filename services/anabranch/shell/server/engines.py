"""The service of each engine: the one place of the server that knows which engines there are."""

from collections.abc import Collection, Mapping
from typing import Any, NotRequired, TypedDict, Unpack

from msgspec.structs import replace

from anabranch.core.belfast.protocol import messages as belfast_messages
from anabranch.core.belfast.protocol.clients import BELFAST
from anabranch.core.belfast.protocol.messages import BELFAST_VERSION
from anabranch.core.belfast.protocol.rights import BelfastRights
from anabranch.core.bolt.protocol import messages as bolt_messages
from anabranch.core.bolt.protocol.clients import BOLT
from anabranch.core.bolt.protocol.messages import PROTOCOL_VERSION
from anabranch.core.bolt.protocol.rights import BoltRights
from anabranch.core.bolt.state.catalogue import ENGINES
from anabranch.core.erwin.protocol import messages as erwin_messages
from anabranch.core.erwin.protocol.clients import ERWIN
from anabranch.core.erwin.protocol.messages import ERWIN_VERSION
from anabranch.core.erwin.protocol.rights import ShardRights
from anabranch.core.limits import Limits
from anabranch.core.rights.claims import LOGS, Rights, Subject
from anabranch.core.sequencing.protocol import messages as sequencing_messages
from anabranch.core.sequencing.protocol.clients import SEQUENCING
from anabranch.core.sequencing.protocol.messages import SEQUENCING_VERSION
from anabranch.core.sequencing.protocol.rights import SequencingRights
from anabranch.core.wire.client_protocol import ClientProtocol
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


class NodePlace(TypedDict):
    """Where a node of a log of another engine is served, and to whom."""

    cluster: str
    version: str
    authority: Authority
    log: NotRequired[Subject | None]
    """The resource whose rights clients need, by default the log that is called as the cluster."""
    name: NotRequired[str]
    """By which clients ask for the node, where a process has several."""
    hosts: NotRequired[Mapping[str, str]]
    """Where other nodes were met last. Clients are told of those that the log is known to have."""
    nodes: NotRequired[Collection[str]]
    """Nodes that the log has by this one's settings, beside those that a directory names."""
    append_limits: NotRequired[AppendLimits | None]
    """The log's quota, which machines don't know."""


def belfast_service(host: Host, node: str, limits: Limits, **place: Unpack[NodePlace]) -> Service:
    """A sequencer or a replica of a shard."""
    messages, rights = belfast_messages, BelfastRights(_log(place))
    welcome = messages.Welcome(BELFAST_VERSION, *_welcome(node, limits, place))
    return _service(BELFAST, host, node, welcome, rights, messages.Directory, place)


def sequencing_service(
    host: Host, node: str, limits: Limits, **place: Unpack[NodePlace]
) -> Service:
    """A sequencing replica of a lazy log."""
    messages, rights = sequencing_messages, SequencingRights(_log(place))
    welcome = messages.Welcome(SEQUENCING_VERSION, *_welcome(node, limits, place))
    return _service(SEQUENCING, host, node, welcome, rights, messages.Directory, place)


def erwin_shard_service(
    host: Host, node: str, limits: Limits, **place: Unpack[NodePlace]
) -> Service:
    """A replica of an Erwin log's shard."""
    welcome = erwin_messages.Welcome(ERWIN_VERSION, *_welcome(node, limits, place))
    directory, rights = sequencing_messages.Directory, ShardRights(_log(place))
    return _service(ERWIN, host, node, welcome, rights, directory, place)


def _log(place: NodePlace) -> Subject:
    return place.get("log") or Subject(LOGS, place["cluster"])


def _welcome(node: str, limits: Limits, place: NodePlace) -> tuple[str, str, str, int, int]:
    """What every node says of itself after its protocol's version."""
    sizes = (limits.batch_bytes_max, limits.batch_records_max)
    return place["cluster"], node, place["version"], *sizes


def _service(  # every protocol has its own of each
    protocol: ClientProtocol,
    host: Host,
    node: str,
    welcome: Any,
    rights: Rights,
    directory: type,
    place: NodePlace,
) -> Service:
    hosts, nodes = place.get("hosts"), place.get("nodes", ())
    service = Service(
        protocol,
        host,
        node,
        welcome=welcome,
        authority=place["authority"],
        rights=rights,
        name=place.get("name", ""),
        completions={directory: _WithHosts(hosts, nodes)} if hosts is not None else {},
    )
    service.append_limits = place.get("append_limits")
    return service


class _WithHosts:
    """Adds where nodes were met last; as long as nothing has changed, the same reply again. Anybody
    who has the token of peers can be met under any name, and clients dial what they are told.
    """

    def __init__(self, hosts: Mapping[str, str], nodes: Collection[str]) -> None:
        self._hosts = hosts
        self._nodes = frozenset(nodes)
        self._seen: Mapping[str, str] = {}
        self._plain: Any = None
        self._completed: Any = None

    def __call__(self, directory: Any) -> Any:
        """A Directory of any protocol."""
        completed = self._completed
        if completed is None or directory is not self._plain or self._seen != self._hosts:
            self._plain, self._seen = directory, dict(self._hosts)
            known = self._nodes | _nodes_of(directory)
            hosts = {node: host for node, host in self._seen.items() if node in known}
            self._completed = completed = replace(directory, hosts=hosts)
        return completed


def _nodes_of(directory: Any) -> frozenset[str]:
    shards = [(shard.primary, *shard.replicas) for shard in directory.shards]
    return frozenset((directory.leader, *getattr(directory, "members", ()))).union(*shards)
