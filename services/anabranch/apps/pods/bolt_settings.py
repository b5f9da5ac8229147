"""How the processes of a cluster are set up (see `apps/settings.py`).

They may share one file and one environment: each takes its own of it, and passes over what only the
others know.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar

import msgspec

from anabranch.apps import settings
from anabranch.apps.pods.base_settings import ProcessSettings, check_address
from anabranch.client.session.endpoint import endpoint
from anabranch.core.errors import BadRequest
from anabranch.core.limits import MIB, Limits
from anabranch.shell.authority.settings import AuthMode, AuthSettings
from anabranch.shell.authority.tokens import Tokens
from anabranch.shell.etcd.api.settings import EtcdSettings
from anabranch.shell.net.tls import TlsSettings, check_mutual
from anabranch.shell.objects.s3.settings import S3Settings
from anabranch.shell.peers.engines import NAME
from anabranch.shell.telemetry.log import Log, LogFormat

GIB = 1024 * MIB

LEASE_S_MIN = 2
"""etcd grants no shorter lease."""


class Archiving(StrEnum):
    ASYNC = "async"
    SYNC = "sync"


class PodSettings(ProcessSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What metadata members and brokers have in common."""

    s3: S3Settings
    """Where the objects are."""

    peer_token: str | None = None
    """What brokers show to metadata members."""

    peer_tokens_file: str = ""
    """A file with such tokens instead, one a line, of which brokers show the first; it is read anew
    when it changes.
    """

    peer_tls: TlsSettings = TlsSettings()
    """Between brokers and metadata members, both of which show a certificate."""

    otlp_endpoint: str = ""
    """Where traces go, as OTLP over HTTP: `http://host:4318`; empty: none are made."""

    trace_one_in: int = 100
    """One in so many objects, and reads, is traced; the same for all processes of a cluster."""

    def check(self, port: int, probe_port: int) -> None:
        super().check(port, probe_port)
        check_mutual(self.peer_tls, "peer_tls")
        if self.trace_one_in < 1:
            raise BadRequest(
                f"trace_one_in = {self.trace_one_in}", "1 traces all, and is the least"
            )
        settings.check_token("peer_token", self.peer_token, self.peer_tokens_file)

    @property
    def has_peer_token(self) -> bool:
        return bool(self.peer_token or self.peer_tokens_file)

    def peer_tokens(self, log: Log) -> Tokens:
        return Tokens(self.peer_token, self.peer_tokens_file, log)


class MetadataSettings(PodSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    port: int = 7430
    """Brokers dial it; 0 takes any free one."""

    probe_port: int = 7431
    """Of /healthz, /readyz and /metrics over HTTP; 0 takes any free one, -1 serves none."""

    etcd: EtcdSettings = EtcdSettings()
    """Where the journal is."""

    lease_s: int = 3
    """A leader that is cut off is followed by another after this time; the same for all members."""

    peer_names: str = ""
    """The name that a broker's certificate must be issued for, with `{name}` for what the broker is
    called, up to the first dot: `{name}.brokers.example`. Empty: any certificate of the authority
    in `peer_tls` will do.
    """

    archive: Archiving = Archiving.ASYNC
    """`sync`: nothing is acknowledged before its journal entry is in the bucket too, so that
    everything can be rebuilt from there.
    """

    archive_ms: int = 1_000
    """How far behind the journal its copy in the bucket may be, with `async`."""

    def __post_init__(self) -> None:
        self.check(self.port, self.probe_port)
        if self.lease_s < LEASE_S_MIN:
            reason = f"etcd grants no lease shorter than {LEASE_S_MIN} s"
            raise BadRequest(f"lease_s = {self.lease_s}", reason)
        if self.peer_names and not (self.peer_tls and NAME in self.peer_names):
            reason = f"it needs peer_tls, and {NAME} where a broker's name belongs"
            raise BadRequest(f"peer_names = {self.peer_names}", reason)
        if not (settings.is_loopback(self.host) or self.has_peer_token or self.peer_tls):
            raise BadRequest(
                f"host = {self.host}",
                "others than this machine could write metadata without a token: set peer_token or "
                "peer_tls, or listen at 127.0.0.1",
            )


class BrokerSettings(PodSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    port: int = 7420
    """Clients dial it, with the binary protocol; 0 takes any free one."""

    probe_port: int = 7422
    """Of /healthz, /readyz and /metrics over HTTP; 0 takes any free one, -1 serves none."""

    metadata: tuple[str, ...]
    """Every metadata member's address, `host:port`; with commas between them where there are no
    lists.
    """

    advertise: str = ""
    """The address, `host:port`, at which clients reach this broker; empty: where it listens."""

    token: str | None = None
    """What clients must show; none means that whoever reaches the address may do everything."""

    tokens_file: str = ""
    """A file with such tokens instead, one a line; it is read anew when it changes."""

    auth: AuthSettings = AuthSettings()
    """Who clients are, and what they may do."""

    supervised: bool = False
    """Whoever started this broker also starts the processes of the Belfast and Erwin logs that are
    created here, as `anabranch up --processes` does; otherwise such a log needs addresses.
    """

    disk_cache: str = ""
    """A directory of this broker's own, for what was fetched and doesn't fit into its memory; it is
    emptied at the start. Empty: none.
    """

    disk_cache_bytes: int = 16 * GIB
    """What that may take of the disk."""

    tls: TlsSettings = TlsSettings()
    """For clients; with an authority (`ca`), only those with a certificate of its are let in."""

    def __post_init__(self) -> None:
        self.check(self.port, self.probe_port)
        if not self.metadata:
            raise BadRequest("metadata", "it is empty: name the address of every metadata member")
        for each in (*self.metadata, *filter(None, (self.advertise,))):
            check_address(each)
        if self.disk_cache_bytes < 1:
            reason = "it is too small to work with: leave disk_cache empty for no cache"
            raise BadRequest(f"disk_cache_bytes = {self.disk_cache_bytes}", reason)
        _check_door(self.host, self.token, self.tokens_file, self.auth, certified=bool(self.tls.ca))
        if settings.is_loopback(self.host):
            return
        if self.host in {"0.0.0.0", "::"} and not self.advertise:  # noqa: S104 - refused, not used
            reason = f"clients can't dial {self.host}: say with --advertise where they reach it"
            raise BadRequest("advertise", reason)


class GatewaySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    service: str
    """The brokers it stands before, some of them at least: `anabranch://host:port,host:port`, or
    `anabranchs://...?ca=FILE` over TLS.
    """

    service_token: str | None = None
    """What brokers want to be shown."""

    name: str = "gateway"
    """What this process calls itself."""

    host: str = "127.0.0.1"
    """The address to listen at; any but loopback's needs a token, or certificates."""

    http_port: int = 7421
    """Of HTTP; 0 takes any free one."""

    token: str | None = None
    """What clients of HTTP must show; none: whoever reaches the address may do everything."""

    tokens_file: str = ""
    """A file with such tokens instead, one a line; it is read anew when it changes."""

    auth: AuthSettings = AuthSettings()
    """Who clients of HTTP are, and what they may do."""

    tls: TlsSettings = TlsSettings()
    """For clients of HTTP; with an authority (`ca`), only those with a certificate of its are let
    in.
    """

    probe_port: int = -1
    """Of /healthz, /readyz and /metrics over plain HTTP, without a token; 0 takes any free one, -1
    serves none.
    """

    announce: str = ""
    """A file to write where this process is found, once it listens; gone when it doesn't."""

    log_format: LogFormat = LogFormat.JSON
    """Log lines for people, or one JSON object each."""

    patience_ms: int = 15_000
    """How long brokers may be missing at the start, before this process ends."""

    limits: Limits = Limits()
    """Every limit and interval, each with its own prose."""

    def __post_init__(self) -> None:
        settings.check_port("http_port", self.http_port)
        settings.check_port("probe_port", self.probe_port, least=-1)
        settings.check_limits(self.limits)
        settings.check_token("service_token", self.service_token)
        endpoint(self.service)
        _check_door(self.host, self.token, self.tokens_file, self.auth, certified=bool(self.tls.ca))


KINDS: tuple[type[msgspec.Struct], ...] = (MetadataSettings, BrokerSettings, GatewaySettings)
"""Of settings that may stand in one file."""

P = TypeVar("P", bound=msgspec.Struct)


def load(kind: type[P], flags: Mapping[str, Any], environment: Mapping[str, str]) -> P:
    return settings.read(kind, flags, environment, [each for each in KINDS if each is not kind])


def _check_door(
    host: str, token: str | None, file: str, auth: AuthSettings, *, certified: bool
) -> None:
    """Nobody else's machine gets in by reaching the address alone."""
    settings.check_token("token", token, file)
    if auth.mode is AuthMode.KUBERNETES:
        if token is not None or file:
            raise BadRequest("token", "with auth.mode = kubernetes each client has its own")
        return
    if token is None and not file and not certified and not settings.is_loopback(host):
        raise BadRequest(
            f"host = {host}",
            "others than this machine could reach it without a token: set one, or listen at "
            "127.0.0.1",
        )
