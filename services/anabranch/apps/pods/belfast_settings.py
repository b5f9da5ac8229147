"""How the processes of a Belfast log are set up: sequencers and shard replicas."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar

from anabranch.apps import settings
from anabranch.apps.pods.base_settings import ProcessSettings, check_address
from anabranch.core.belfast.ledger.rules import Rules
from anabranch.core.consensus.consensus import ConsensusTiming
from anabranch.core.errors import BadRequest
from anabranch.shell.authority.settings import AuthMode, AuthSettings
from anabranch.shell.etcd.api.settings import EtcdSettings
from anabranch.shell.net.tls import TlsSettings


class Durability(StrEnum):
    FSYNC = "fsync"
    MEMORY = "memory"


class NodeSettings(ProcessSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What sequencers and shards have in common."""

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
    """What sequencers and shards show each other."""

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
    """`memory`: what is acknowledged is in the memories of a majority, not on its disks; a loss of
    power loses it. As the paper's artifact does.
    """

    reached_file: str = ""
    """A file, outside of `data`, that notes how far the journal went. A journal that is gone or
    shorter than noted isn't served: remove the note as well to have the others fill it. Empty:
    nothing is noted.
    """

    def check(self, port: int, probe_port: int) -> None:
        super().check(port, probe_port)
        settings.check_token("token", self.token, self.tokens_file)
        settings.check_token("peer_token", self.peer_token, self.peer_tokens_file)
        if self.address:
            check_address(self.address)
        if settings.is_loopback(self.host):
            return
        kubernetes = self.auth.mode is AuthMode.KUBERNETES
        known = (
            kubernetes or self.token or self.tokens_file,
            self.peer_token or self.peer_tokens_file,
        )
        if not all(known):
            raise BadRequest(
                f"host = {self.host}",
                "others than this machine could reach it without a token: set token and "
                "peer_token, or listen at 127.0.0.1",
            )
        if self.host in {"0.0.0.0", "::"} and not self.address:  # noqa: S104 - refused, not used
            reason = f"nobody can dial {self.host}: say with --address where this process is"
            raise BadRequest("address", reason)


class SequencerSettings(NodeSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    port: int = 7440
    """Shards, clients and the other sequencers dial it; 0 takes any free one."""

    probe_port: int = 7441
    """Of /healthz, /readyz and /metrics over HTTP; 0 takes any free one, -1 serves none."""

    members: tuple[str, ...] = ()
    """The address of every sequencer of the group, this one's among them; empty: it is alone."""

    rules: Rules = Rules()
    """Time and quotas; those of the sequencer that leads count."""

    consensus: ConsensusTiming = ConsensusTiming()
    """When a leader is thought dead."""

    epochs: bool = False
    """Keep each leader's term in etcd: a group that has lost its disks, and begins anew under the
    same name, then doesn't lead.
    """

    etcd: EtcdSettings = EtcdSettings()
    """Where that etcd is."""

    def __post_init__(self) -> None:
        self.check(self.port, self.probe_port)
        for each in self.members:
            check_address(each)
        if self.members and self.address and self.address not in self.members:
            reason = f"{self.address} is not among them: name every sequencer, this one as well"
            raise BadRequest("members", reason)
        settings.check_rules(self.rules)


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
    """What the shard demands when it joins; 0: as the rules say."""

    log_quota_file: str = ""
    """A file with what may be appended through this process in a second, as JSON with
    `append_bytes_per_s`, `append_records_per_s` and `burst_ms`: the shard's share of its log's
    quota. It is read anew when it changes; no file, or an empty one, limits nothing.
    """

    cache_bytes: int = 64 << 20
    """Of the newest records, which are served without a look at the disk."""

    def __post_init__(self) -> None:
        self.check(self.port, self.probe_port)
        for each in (*self.replicas, *self.sequencers):
            check_address(each)
        if not self.sequencers:
            raise BadRequest("sequencers", "it is empty: name the address of every sequencer")
        if self.replicas and self.address and self.address not in self.replicas:
            reason = f"{self.address} is not among them: name every replica, this one as well"
            raise BadRequest("replicas", reason)
        if not self.shard:
            raise BadRequest("shard", "it is empty: name the shard")
        for name in ("quota", "cache_bytes"):
            if getattr(self, name) < 0:
                raise BadRequest(f"{name} = {getattr(self, name)}", "it can't be negative")


KINDS: tuple[type[NodeSettings], ...] = (SequencerSettings, ShardSettings)
"""Of settings that may stand in one file."""

N = TypeVar("N", bound=NodeSettings)


def load(kind: type[N], flags: Mapping[str, Any], environment: Mapping[str, str]) -> N:
    return settings.read(kind, flags, environment, [each for each in KINDS if each is not kind])
