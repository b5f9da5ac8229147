"""How the operator is set up: flags over ANABRANCH_OPERATOR_... variables over a TOML file."""

import socket
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from anabranch.apps import settings
from anabranch.client.session.endpoint import endpoint
from anabranch.core.errors import BadRequest
from anabranch.shell.telemetry.log import LogFormat
from anabranch_operator.kube.tokens import TokenSecret
from anabranch_operator.plan.certificates.facts import CertificateSettings, Mode
from anabranch_operator.plan.election.candidate import Terms
from anabranch_operator.plan.engine.world import Surroundings
from anabranch_operator.plan.log.job_templates import GateSettings

PREFIX = "ANABRANCH_OPERATOR_"


class Scope(StrEnum):
    NAMESPACE = "namespace"
    CLUSTER = "cluster"


class OperatorSettings(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    release: str = "anabranch"
    """What the installation is called: its Lease, Services and Secrets are named after it."""

    namespace: str = ""
    """The installation's; empty: the one that this process is in."""

    watch: Scope = Scope.NAMESPACE
    """Whose Logs and Forks are served: those of the installation's namespace, or all."""

    service: str = "anabranch://127.0.0.1:7420"
    """The log service, as a client reaches it."""

    belfast_token_file: str = ""
    """The token of Belfast logs, if they ask for one."""

    belfast_ca: str = ""
    """The authority of those that are met over TLS, as PEM; empty: those of this machine."""

    metadata: str = ""
    """The StatefulSet of the metadata members; empty: the release's name with -metadata."""

    certificates: CertificateSettings = CertificateSettings()
    """Who makes certificates, and which."""

    gates: GateSettings = GateSettings()
    """What the Jobs of promotion gates may do."""

    tokens: tuple[TokenSecret, ...] = ()
    """Secrets with tokens that are made if they are missing, and stay as they are if not."""

    name: str = ""
    """This process's, unlike any other's; empty: the host's."""

    kubeconfig: str = ""
    """The API server, and who we are towards it; empty: as in a pod, or as for kubectl."""

    host: str = "0.0.0.0"  # noqa: S104 - probes come from the node
    """The address that probes and the webhook are served at."""

    probe_port: int = 8080
    """Of /healthz, /readyz and /metrics over HTTP; 0 takes any free one, -1 serves none."""

    webhook_port: int = 9443
    """Of evictions over HTTPS; 0 takes any free one, -1 serves none."""

    webhook_dir: str = "/var/run/anabranch/webhook"
    """Where the webhook's tls.crt and tls.key come to be; they may change at any time."""

    webhook_client_ca: str = ""
    """The authority whose certificates callers of the webhook must show, as PEM; empty: anybody may
    call, and pods are handed over only if their node is seen to be drained.
    """

    announce: str = ""
    """A file to write where this process is found, once it listens; gone when it doesn't."""

    log_format: LogFormat = LogFormat.JSON
    """Log lines for people, or one JSON object each."""

    watch_nodes: bool = False
    """See nodes that are being drained; it needs a right in the whole cluster. Without it, and
    without `webhook_client_ca`, evicted pods wait for the deadline and nothing is handed over.
    """

    lease_s: float = 15
    """Without a sign of life for so long another operator takes over."""

    renew_s: float = 10
    """An operator that couldn't renew its lease for so long stops."""

    retry_s: float = 2
    """How often the lease is renewed, and looked at."""

    canary_s: float = 60
    """An operator that doesn't see what it knows to be there for so long ends, to start anew."""

    inactivity_s: float = 70
    """A watch that is silent for so long is begun anew: the API server says something each
    minute.
    """

    sweep_s: float = 300
    """How often what watches told is compared with lists."""

    eviction_s: float = 600
    """An eviction is put off until the pod's logs are elsewhere, but no longer than this."""

    vitals_s: float = 15
    """How often brokers and members are asked what they count, while that matters."""

    look_ms: int = 2_000
    """How often the log service is looked at."""

    counters_s: float = 30
    """A status in which nothing but counters changed is written no more often than this."""

    trim_s: float = 60
    """How often a log is trimmed to the age of its retention."""

    resync_ms: int = 300_000
    """Everything is planned anew after so long, though nothing was seen to change."""

    requests_per_s: int = 100
    """Writes on the API server."""

    requests_burst: int = 200
    """Of them, so many at once after a pause."""

    in_flight_max: int = 64
    """Actions on their way at once."""

    drain_s: float = 10
    """How long what is on its way may take when this process is told to end."""

    def __post_init__(self) -> None:
        settings.check_port("probe_port", self.probe_port, least=-1)
        settings.check_port("webhook_port", self.webhook_port, least=-1)
        endpoint(self.service)
        if not self.retry_s < self.renew_s < self.lease_s:
            reason = "retry_s must be less than renew_s, and renew_s less than lease_s"
            raise BadRequest(f"lease_s = {self.lease_s:g}", reason)
        if self.trim_s < 1 or self.counters_s < 0:
            raise BadRequest("trim_s", "trim_s must be 1 or more, and counters_s 0 or more")
        if self.requests_per_s < 1 or self.requests_burst < 1:
            raise BadRequest("requests_per_s", "it is too small to work with")

    @property
    def node(self) -> str:
        return self.name or socket.gethostname()

    @property
    def lease(self) -> str:
        return f"{self.release}-operator"

    @property
    def terms(self) -> Terms:
        return Terms(lease_s=self.lease_s, renew_s=self.renew_s, retry_s=self.retry_s)

    def surroundings(self, namespace: str) -> Surroundings:
        """`namespace`: the one that this process is in."""
        return Surroundings(
            namespace=self.namespace or namespace,
            release=self.release,
            watches="" if self.watch is Scope.CLUSTER else self.namespace or namespace,
            tls=self.certificates.mode is not Mode.OFF,
            certificates=self.certificates,
            gates=self.gates,
            metadata=self.metadata or f"{self.release}-metadata",
            look_ms=self.look_ms,
            trim_ms=round(self.trim_s * 1_000),
            cosmetic_ms=round(self.counters_s * 1_000),
            resync_ms=self.resync_ms,
            in_flight_max=self.in_flight_max,
            eviction_ms=round(self.eviction_s * 1_000),
        )


def load(flags: Mapping[str, Any], environment: Mapping[str, str]) -> OperatorSettings:
    ours = {
        settings.PREFIX + name.removeprefix(PREFIX): value
        for name, value in environment.items()
        if name.startswith(PREFIX)
    }
    return settings.read(OperatorSettings, flags, ours)
