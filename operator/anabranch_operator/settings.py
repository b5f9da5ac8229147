"""The operator's settings: flags win over ANABRANCH_OPERATOR_... variables, and these over a TOML
file.
"""

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
    """Name of the Helm release. The Lease, Services and Secrets of the installation are named after
    it.
    """

    namespace: str = ""
    """Namespace of the installation; empty: the one that this process runs in."""

    watch: Scope = Scope.NAMESPACE
    """Which Logs and Forks are served: those of the installation's namespace (`namespace`) or those
    of all (`cluster`).
    """

    service: str = "anabranch://127.0.0.1:7420"
    """URL of the log service, as clients use it."""

    belfast_token_file: str = ""
    """A file with the token for Belfast logs; empty: they ask for none."""

    belfast_ca: str = ""
    """A PEM file with the authority that Belfast logs with TLS are trusted by; empty: the
    authorities of this machine.
    """

    metadata: str = ""
    """Name of the metadata members' StatefulSet; empty: the release's name with -metadata."""

    certificates: CertificateSettings = CertificateSettings()
    """Who makes certificates, and which ones."""

    gates: GateSettings = GateSettings()
    """What the Jobs of promotion gates may do."""

    tokens: tuple[TokenSecret, ...] = ()
    """Secrets with tokens that the operator makes if they don't exist, and never changes."""

    name: str = ""
    """Name of this process, different from that of every other operator; empty: the host's name."""

    kubeconfig: str = ""
    """A kubeconfig file with the API server's address and credentials; empty: those of the pod, or
    those that kubectl uses.
    """

    host: str = "0.0.0.0"  # noqa: S104 - probes come from the node
    """Address that probes and the webhook are served at."""

    probe_port: int = 8080
    """Port of /healthz, /readyz and /metrics over HTTP; 0 takes any free one, -1 serves none."""

    webhook_port: int = 9443
    """Port of the eviction webhook over HTTPS; 0 takes any free one, -1 serves none."""

    webhook_dir: str = "/var/run/anabranch/webhook"
    """Directory with the webhook's `tls.crt` and `tls.key`. They are read again when they change,
    and waited for at the start.
    """

    webhook_client_ca: str = ""
    """A PEM file with the authority whose certificates callers of the webhook must show; empty:
    anybody may call, and a pod hands over only if its node is seen to be drained.
    """

    announce: str = ""
    """A file to write this process's addresses to once it listens; it is removed at the end."""

    log_format: LogFormat = LogFormat.JSON
    """Format of log lines: `human`, or one JSON object each (`json`)."""

    watch_nodes: bool = False
    """Watch nodes, to see which are being drained; this needs a right in the whole cluster. Without
    it, and without `webhook_client_ca`, evicted pods wait for the deadline and nothing is handed
    over.
    """

    lease_s: float = 15
    """Seconds without a renewal of the lease after which another operator takes over."""

    renew_s: float = 10
    """Seconds after which an operator that couldn't renew its lease stops acting; less than
    `lease_s`.
    """

    retry_s: float = 2
    """Seconds between renewals of the lease, and between looks at it; less than `renew_s`."""

    canary_s: float = 60
    """Seconds after which an operator ends whose watches don't show a change that it knows of;
    Kubernetes starts it again.
    """

    inactivity_s: float = 70
    """Seconds of silence after which a watch is started again; the API server sends something every
    minute.
    """

    sweep_s: float = 300
    """Seconds between two comparisons of a watch with a list of the API server."""

    eviction_s: float = 600
    """Seconds for which an eviction is put off at most until the pod has handed over what it
    serves.
    """

    vitals_s: float = 15
    """Seconds between two readings of pods' metrics, while a plan needs them."""

    look_ms: int = 2_000
    """Milliseconds between two looks at the log service."""

    counters_s: float = 30
    """A status in which nothing but counters changed is written no more often than this."""

    trim_s: float = 60
    """How often a log is trimmed to the age of its retention."""

    resync_ms: int = 300_000
    """Milliseconds after which every object is planned again although nothing was seen to change.
    """

    requests_per_s: int = 100
    """Writes on the API server per second, on average."""

    requests_burst: int = 200
    """Writes on the API server that may follow each other at once after a pause."""

    in_flight_max: int = 64
    """Number of actions that may be in flight at once."""

    drain_s: float = 10
    """Seconds that actions in flight may still take when this process is told to end."""

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
