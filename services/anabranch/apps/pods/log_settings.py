"""How the processes of a log of another engine are set up: sequencers and shard replicas."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar

import msgspec

from anabranch.apps import settings
from anabranch.apps.pods.base_settings import ProcessSettings, check_address
from anabranch.client.session.endpoint import endpoint
from anabranch.core.belfast.ledger.rules import Rules
from anabranch.core.consensus.consensus import ConsensusTiming
from anabranch.core.errors import BadRequest
from anabranch.core.erwin.protocol.rows import Mode
from anabranch.core.storage.black_box_address import BlackBoxAddress
from anabranch.shell.authority.settings import AuthMode, AuthSettings
from anabranch.shell.etcd.api.settings import EtcdSettings
from anabranch.shell.net.tls import TlsSettings


class LogEngine(StrEnum):
    """Whose machines a process runs."""

    BELFAST = "belfast"
    ERWIN = "erwin"
    LAZY = "lazy"
    """In the place of an engine: the lazy front of a Bolt log."""


class Configurations(StrEnum):
    """Where the controllers of an Erwin log journal what they decide."""

    JOURNAL = "journal"
    ETCD = "etcd"


class Durability(StrEnum):
    FSYNC = "fsync"
    MEMORY = "memory"


class NodeSettings(ProcessSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What sequencers and shards have in common."""

    engine: LogEngine = LogEngine.BELFAST
    """The log's engine, `belfast` or `erwin`, or `lazy` for the lazy front of a Bolt log; the same
    for all its processes.
    """

    data: str
    """The directory that holds everything of this process; it is created if it isn't there."""

    address: str = ""
    """Where others dial this process, `host:port`, which is its name to them; empty: where it
    listens.
    """

    token: str | None = None
    """What clients must show; none means that whoever reaches the address may do everything."""

    auth: AuthSettings = AuthSettings()
    """Who clients are, and what they may do with the log. With `kubernetes`, `token` and
    `tokens_file` let nobody in.
    """

    peer_token: str | None = None
    """What sequencers and shards show each other; needed where clients must show anything, because
    nodes and clients dial the same port.
    """

    tokens_file: str = ""
    """A file with tokens of clients instead, one a line; it is read anew when it changes."""

    peer_tokens_file: str = ""
    """A file with tokens of sequencers and shards instead, one a line, of which they show the
    first; it is read anew when it changes.
    """

    tls: TlsSettings = TlsSettings()
    """The certificate to show whoever dials; and, with an authority (`ca`), TLS to the others,
    whose certificates it checks.
    """

    durability: Durability = Durability.FSYNC
    """`memory`: what is acknowledged is in the memories of a majority, in an Erwin log of all
    members, not on their disks; a loss of power loses it. As the papers' artifacts do.
    """

    reached_file: str = ""
    """A file, outside of `data`, that notes how far the journal went. A journal that is gone or
    shorter than noted isn't served: remove the note as well to have the others fill it. Empty:
    nothing is noted.
    """

    @property
    def nodes(self) -> tuple[str, ...]:
        """The addresses of all nodes of the log that this process is told of."""
        raise NotImplementedError

    def check(self, port: int, probe_port: int) -> None:
        super().check(port, probe_port)
        settings.check_token("token", self.token, self.tokens_file)
        settings.check_token("peer_token", self.peer_token, self.peer_tokens_file)
        if self.address:
            check_address(self.address)
        kubernetes = self.auth.mode is AuthMode.KUBERNETES
        clients = bool(kubernetes or self.token or self.tokens_file)
        peers = bool(self.peer_token or self.peer_tokens_file)
        if settings.is_loopback(self.host):
            self._check_peers(clients=clients, peers=peers)
            return
        if not (clients and peers):
            raise BadRequest(
                f"host = {self.host}",
                "others than this machine could reach it without a token: set token and "
                "peer_token, or listen at 127.0.0.1",
            )
        self._check_reachable()

    def _check_peers(self, *, clients: bool, peers: bool) -> None:
        """Clients and other nodes dial the same port."""
        if clients and not peers:
            raise BadRequest(
                "peer_token",
                "clients must show who they are, and whoever doesn't could speak as a node of the "
                "log: set peer_token or peer_tokens_file, the same for all nodes of the log",
            )

    def _check_reachable(self) -> None:
        if self.host in {"0.0.0.0", "::"} and not self.address:  # noqa: S104 - refused, not used
            reason = f"nobody can dial {self.host}: say with --address where this process is"
            raise BadRequest("address", reason)

    def _check_unused(self, *names: str) -> None:
        """Settings that mean nothing to this engine are as they are by default."""
        plain = {each.name: each.default for each in msgspec.structs.fields(self)}
        for name in names:
            if getattr(self, name) != plain[name]:
                raise BadRequest(name, f"it says nothing to the engine {self.engine}: leave it out")


class SequencerSettings(NodeSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    port: int = 7440
    """Shards, clients and the other sequencers dial it; 0 takes any free one."""

    probe_port: int = 7441
    """Of /healthz, /readyz and /metrics over HTTP; 0 takes any free one, -1 serves none."""

    members: tuple[str, ...] = ()
    """The address of every sequencer of the group, this one's among them; empty: it is alone."""

    rules: Rules = Rules()
    """Belfast: time and quotas; those of the sequencer that leads count."""

    consensus: ConsensusTiming = ConsensusTiming()
    """Belfast: when a leader is thought dead."""

    epochs: bool = False
    """Belfast: keep each leader's term in etcd. A group that has lost its disks, and begins anew
    under the same name, then doesn't lead.
    """

    mode: Mode = Mode.M
    """Erwin: `m` sends records through the sequencers, `st` from clients to shards. It counts when
    the log begins, and must stay as it was then.
    """

    configurations: Configurations = Configurations.JOURNAL
    """Erwin: with `etcd`, the controllers of all sequencers stand for election in etcd, and journal
    there who is a member and which shards there are. With `journal`, the first member's controller
    decides alone and keeps a journal in its `data`: nobody is replaced while it is away.
    """

    accept_loss: bool = False
    """Erwin and a lazy front, durability `memory`: go on with what the shards, or the log, have
    when no member of a view is left. Otherwise appends wait for a member that may come back.
    """

    log_quota_file: str = ""
    """Erwin and a lazy front: a file with what may be appended to the log in a second, as JSON with
    `append_bytes_per_s`, `append_records_per_s` and `burst_ms`; the same at every sequencer. It is
    read anew when it changes; no file, or an empty one, limits nothing.
    """

    service: str = ""
    """A lazy front: the address of the service that has its log, as clients write it:
    `anabranch://[token@]host[:port]`. The token needs the right `order` on the log.
    """

    log_id: int = -1
    """A lazy front: the id of its log, as the service describes it."""

    etcd: EtcdSettings = EtcdSettings()
    """Where etcd is, for `epochs` or `configurations`."""

    def __post_init__(self) -> None:
        self.check(self.port, self.probe_port)
        for each in self.members:
            check_address(each)
        if self.members and self.address and self.address not in self.members:
            reason = f"{self.address} is not among them: name every sequencer, this one as well"
            raise BadRequest("members", reason)
        settings.check_rules(self.rules)
        match self.engine:
            case LogEngine.BELFAST:
                erwins = ("mode", "configurations", "accept_loss", "log_quota_file")
                self._check_unused(*erwins, "service", "log_id")
            case LogEngine.ERWIN:
                self._check_unused("rules", "consensus", "epochs", "service", "log_id")
            case LogEngine.LAZY:
                self._check_unused("rules", "consensus", "epochs", "mode", "configurations", "etcd")
                self._check_log()
        if self.accept_loss and self.durability is not Durability.MEMORY:
            reason = "only members that keep appends in memory lose them: leave it out"
            raise BadRequest("accept_loss", reason)

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.members

    def _check_log(self) -> None:
        if not self.service:
            raise BadRequest("service", "it is empty: name the service that has the front's log")
        endpoint(self.service)
        if self.log_id < 0:
            raise BadRequest("log_id", "a lazy front is before one log: give that log's id")


class ShardSettings(NodeSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    port: int = 7450
    """Clients, sequencers and the shard's other replicas dial it; 0 takes any free one."""

    probe_port: int = 7451
    """Of /healthz, /readyz and /metrics over HTTP; 0 takes any free one, -1 serves none."""

    shard: str
    """The name of the shard that this is a replica of."""

    sequencers: tuple[str, ...]
    """The address of every sequencer."""

    replicas: tuple[str, ...] = ()
    """The address of every replica of this shard, in the same order everywhere, this one's among
    them; the first is its first primary. Empty: it is the only one.
    """

    quota: int = 0
    """Belfast: what the shard demands when it joins; 0: as the rules say."""

    log_quota_file: str = ""
    """Belfast: a file with what may be appended through this process in a second, as JSON with
    `append_bytes_per_s`, `append_records_per_s` and `burst_ms`: the shard's share of its log's
    quota. It is read anew when it changes; no file, or an empty one, limits nothing.
    """

    cache_bytes: int = 64 << 20
    """Of the newest records, which are served without a look at the disk."""

    black_box: str = ""
    """Erwin, mode `m`, one replica: where the shard keeps its records instead of its `data`. This
    shard's own Kafka topic, `kafka://HOST:PORT/TOPIC`, or Bolt log, `anabranch://HOST:PORT/LOG`; it
    is created if it isn't there.
    """

    kafka_file: str = ""
    """A TOML file that says how Kafka clusters are reached which ask for TLS or a user. It is read
    anew when it changes.
    """

    def __post_init__(self) -> None:
        self.check(self.port, self.probe_port)
        self._check_black_box()
        for each in (*self.replicas, *self.sequencers):
            check_address(each)
        if not self.sequencers:
            raise BadRequest("sequencers", "it is empty: name the address of every sequencer")
        if self.replicas and self.address and self.address not in self.replicas:
            reason = f"{self.address} is not among them: name every replica, this one as well"
            raise BadRequest("replicas", reason)
        if self.engine is LogEngine.LAZY:
            raise BadRequest("engine = lazy", "a lazy front has no shards: its log has the records")
        if not self.shard:
            raise BadRequest("shard", "it is empty: name the shard")
        for name in ("quota", "cache_bytes"):
            if getattr(self, name) < 0:
                raise BadRequest(f"{name} = {getattr(self, name)}", "it can't be negative")
        if self.engine is LogEngine.ERWIN:
            self._check_unused("quota", "log_quota_file")
        else:
            self._check_unused("black_box", "kafka_file")

    @property
    def nodes(self) -> tuple[str, ...]:
        return (*self.sequencers, *self.replicas)

    def _check_black_box(self) -> None:
        if not self.black_box:
            return
        BlackBoxAddress.parse(self.black_box)
        if len(self.replicas) > 1:
            reason = "the black box replicates the shard's records: name one replica"
            raise BadRequest("replicas", reason)


KINDS: tuple[type[NodeSettings], ...] = (SequencerSettings, ShardSettings)
"""Of settings that may stand in one file."""

N = TypeVar("N", bound=NodeSettings)


def load(kind: type[N], flags: Mapping[str, Any], environment: Mapping[str, str]) -> N:
    return settings.read(kind, flags, environment, [each for each in KINDS if each is not kind])
