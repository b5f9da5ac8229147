"""What the chart `anabranch` may be told: its values, their defaults, their bounds and their prose.

`values.yaml`, its schema and the chart's README are written from here by
`python -m tests.charts.written`.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from tests.charts.shapes import (
    Address,
    Count,
    Free,
    Labels,
    Name,
    Quantity,
    Replicas,
    Url,
)
from tests.charts.spark_values import Spark

from anabranch.apps.pods.bolt_settings import KINDS
from anabranch.apps.settings import Option, options


class Shape(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A table of values, whose keys are in camel case."""


class Image(Shape, frozen=True, kw_only=True):
    repository: Annotated[str, Meta(min_length=1)]
    """Its name, without registry and tag."""
    tag: str = ""
    """Which of them; empty: the chart's `appVersion`."""
    digest: Annotated[str, Meta(pattern=r"^(sha256:[0-9a-f]{64})?$")] = ""
    """The very one; it wins over the tag."""


class Images(Shape, frozen=True, kw_only=True):
    registry: Annotated[str, Meta(pattern=r"^([a-z0-9.:/_-]*[a-z0-9])?$")] = ""
    """Where the images are, put before all their names; empty: where nodes look by themselves."""
    pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    """When nodes fetch them."""
    pull_secrets: list[Name] = []
    """Names of Secrets that nodes need to fetch them."""
    services: Image = Image(repository="anabranch/anabranch")
    """Of metadata members, brokers, the gateway and the test."""
    operator: Image = Image(repository="anabranch/anabranch-operator")
    """Of the operator."""
    spark: Image = Image(repository="anabranch/anabranch-spark")
    """Of drivers and executors of Spark."""
    etcd: Image = Image(repository="anabranch/dev-etcd", tag="v3.6.16")
    """Of the etcd that comes with `dev.enabled`."""
    s3: Image = Image(repository="anabranch/dev-s3", tag="v1.8.0")
    """Of the S3 server that comes with `dev.enabled`."""


class Amounts(Shape, frozen=True, kw_only=True):
    cpu: Quantity | int
    """Cores."""
    memory: Quantity | int
    """Memory."""


class Resources(Shape, frozen=True, kw_only=True):
    requests: Amounts
    """What is reserved."""
    limits: dict[Literal["cpu", "memory", "ephemeral-storage"], Quantity | int]
    """What it may take at most; a limit of `cpu` slows it down."""


def resources(cpu: str, memory: str, memory_max: str) -> Resources:
    return Resources(requests=Amounts(cpu=cpu, memory=memory), limits={"memory": memory_max})


class DevStorage(Shape, frozen=True, kw_only=True):
    persistent: bool = True
    """Keep their data in volumes, until the release goes; else it goes with the pods."""
    size: Quantity = "2Gi"
    """Of each volume."""
    class_name: str = ""
    """StorageClass of the volumes; empty: the cluster's default."""


class Dev(Shape, frozen=True, kw_only=True):
    enabled: bool = False
    """Bring one etcd and one S3 server, for a trial. Not for data that matters."""
    storage: DevStorage = DevStorage()
    """Where those two keep their data."""


class Etcd(Shape, frozen=True, kw_only=True):
    endpoints: list[Address] = []
    """Every member's client address, `host:port`, with `https://` before it for TLS; single members
    and no balancer.
    """
    existing_secret: Name = ""
    """A Secret with `ANABRANCH_ETCD_USER` and `ANABRANCH_ETCD_PASSWORD`, if etcd asks for them."""
    tls_secret: Name = ""
    """A Secret with `ca.crt`, and with `tls.crt` and `tls.key` if etcd asks for a certificate."""
    client_certificate: bool = False
    """Show etcd the certificate of that Secret."""


class S3(Shape, frozen=True, kw_only=True):
    bucket: str = ""
    """It must be there."""
    endpoint: Url = ""
    """`https://host:port`; empty: Amazon's own, of the region."""
    region: str = "us-east-1"
    """Of the bucket."""
    prefix: str = ""
    """Before every object's name."""
    path_style: bool = True
    """The bucket's name in the path, or before the host's name."""
    existing_secret: Name = ""
    """A Secret with `ANABRANCH_S3_ACCESS_KEY` and `ANABRANCH_S3_SECRET_KEY`; empty: what the pods'
    service accounts may do.
    """
    service_account_annotations: Labels = {}
    """Annotations of the service accounts of members and brokers, as clouds' roles want them."""


class IssuerRef(Shape, frozen=True, kw_only=True):
    name: Name = ""
    """An issuer that is there; empty: the chart makes an authority of its own."""
    kind: Literal["Issuer", "ClusterIssuer"] = "Issuer"
    """Of one namespace, or of all."""
    group: str = "cert-manager.io"
    """Whose kind it is."""


class CertManager(Shape, frozen=True, kw_only=True):
    issuer_ref: IssuerRef = IssuerRef()
    """Who signs."""
    broker_names: list[Annotated[str, Meta(pattern=r"^(\*\.)?[a-z0-9.-]+$", max_length=253)]] = []
    """More DNS names in the brokers' certificate. The pods of a SequencerSet and a ShardGroup show
    it too: `*.<set>-sequencers.<namespace>.svc` and `*.<group>-shards.<namespace>.svc`.
    """


class TlsSecrets(Shape, frozen=True, kw_only=True):
    peer: Name = ""
    """Between brokers and members."""
    broker: Name = ""
    """Of brokers, for clients."""
    gateway: Name = ""
    """Of the gateway."""
    operator: Name = ""
    """Of the operator's webhook."""


class Tls(Shape, frozen=True, kw_only=True):
    mode: Literal["self", "certManager", "provided", "off"] = "self"
    """Who makes certificates: the operator, cert-manager, you, nobody."""
    cert_manager: CertManager = CertManager()
    """For the mode `certManager`."""
    secrets: TlsSecrets = TlsSecrets()
    """For the mode `provided`: Secrets with `tls.crt`, `tls.key` and `ca.crt`; empty: as the
    operator would call them, `<release>-peer-tls` and so on.
    """


class Auth(Shape, frozen=True, kw_only=True):
    mode: Literal["kubernetes", "token"] = "kubernetes"
    """Clients show a token of their service account and need Kubernetes' rights, or all show one
    token and may do everything.
    """
    existing_secret: Name = ""
    """For `token`: a Secret with `ANABRANCH_TOKEN`."""
    user_roles: bool = True
    """Add the verbs on logs and forks to the cluster's roles `view`, `edit` and `admin`."""


class Placement(Shape, frozen=True, kw_only=True):
    node_selector: Labels = {}
    """Which nodes they may run on."""
    tolerations: list[Free] = []
    """Which taints of nodes they stand."""
    priority_class_name: Name = ""
    """How they fare when a node is full."""
    pod_annotations: Labels = {}
    """Annotations for the pods."""


class Metadata(Placement, frozen=True, kw_only=True):
    replicas: Replicas = 3
    """Members: one leads, the others stand by."""
    resources: Resources = resources("250m", "512Mi", "2Gi")
    """What each asks for and may take."""


class Topology(Shape, frozen=True, kw_only=True):
    zones: bool = True
    """Spread them over zones where there are several."""
    hosts: Literal["Preferred", "Required"] = "Preferred"
    """May two of them share a node if there is no other way?"""


class Scaling(Shape, frozen=True, kw_only=True):
    append_bytes_per_broker: Annotated[int, Meta(ge=1)] = 50 * 1024 * 1024
    """Appended in a second, above which the operator asks for one more."""
    logs_per_broker: Annotated[int, Meta(ge=1)] = 64
    """Root logs and trees of forks, likewise."""


class DiskCache(Shape, frozen=True, kw_only=True):
    size: Annotated[str, Meta(pattern=r"^([0-9]+(\.[0-9]+)?(k|Ki|M|Mi|G|Gi|T|Ti)?)?$")] = ""
    """How much of its node's disk a broker may use as a cache; empty: none."""


class Brokers(Placement, frozen=True, kw_only=True):
    min: Count = 2
    """There are never fewer."""
    max: Count = 8
    """There are never more."""
    spare: Annotated[int, Meta(ge=0, le=1_000)] = 1
    """So many serve nothing, so that an exclusive fork needn't wait for a pod."""
    resources: Resources = resources("500m", "768Mi", "2Gi")
    """What each asks for and may take."""
    drain_seconds: Annotated[int, Meta(ge=1, le=3_600)] = 60
    """How long one may take to hand over before it is ended."""
    topology: Topology = Topology()
    """How they are spread."""
    scaling: Scaling = Scaling()
    """What makes the operator ask for one more."""
    disk_cache: DiskCache = DiskCache()
    """A cache on disk, behind the one in memory."""
    rollout: Literal["Auto", "OnDelete", "Paused"] = "Auto"
    """How pods come to be what the values say: one at a time, when you delete one, not at all."""


class Service(Shape, frozen=True, kw_only=True):
    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = "ClusterIP"
    """From where it can be reached."""
    annotations: Labels = {}
    """As load balancers of clouds want them."""


class Gateway(Placement, frozen=True, kw_only=True):
    enabled: bool = True
    """Serve HTTP too."""
    replicas: Annotated[int, Meta(ge=1, le=100)] = 2
    """How many."""
    resources: Resources = resources("250m", "256Mi", "1Gi")
    """What each asks for and may take."""
    service: Service = Service()
    """How it is reached."""


class Belfast(Shape, frozen=True, kw_only=True):
    auth: Literal["token", "kubernetes"] = "token"
    """All clients of Belfast and Erwin logs, and of lazy appends, show the one token of the Secret
    below; or, where `auth.mode` is `kubernetes`, they show a token of their service account and
    need rights on the log. For that a ConfigMap and a ServiceAccount `<release>-belfast` are made:
    name them in `config.configMap` and `serviceAccountName` of each SequencerSet and ShardGroup.
    """
    existing_secret: Name = ""
    """A Secret with `ANABRANCH_TOKEN` and `ANABRANCH_PEER_TOKEN` for SequencerSets and ShardGroups;
    empty: `<release>-belfast` is made.
    """
    epochs: bool = True
    """Let a log's sequencers keep in the release's etcd who has led, so that a group which has lost
    its disks doesn't lead: a ConfigMap `<release>-belfast`, for a SequencerSet's
    `config.configMap`.
    """


class Erwin(Shape, frozen=True, kw_only=True):
    etcd: bool = True
    """Let Erwin logs keep their configurations in the release's etcd, and elect their controllers
    there: a ConfigMap `<release>-erwin`, for the `config.configMap` of SequencerSets with
    `engine: erwin`. Tokens and service accounts are those of `belfast`.
    """


class Operator(Placement, frozen=True, kw_only=True):
    replicas: Annotated[int, Meta(ge=1, le=5)] = 2
    """One acts, the others stand by."""
    watch: Literal["namespace", "cluster"] = "namespace"
    """Logs and Forks of the release's namespace, or of all."""
    resources: Resources = resources("100m", "128Mi", "256Mi")
    """What each asks for and may take."""


class Gates(Shape, frozen=True, kw_only=True):
    enabled: bool = True
    """Run the Jobs of promotion gates: in the release's namespace, or with
    `operator.watch: cluster` in `gates.namespaces` only.
    """
    namespaces: list[Name] = []
    """With `operator.watch: cluster`: the namespaces in which the operator may create Jobs. They
    must exist.
    """
    service_account: Name = ""
    """The service account of gates whose template names none; empty: `<release>-gate` is made,
    which may read forks and nothing else.
    """
    service_accounts: list[Name] = []
    """More service accounts that the template of a gate may name."""
    api_accounts: list[Name] = []
    """Those of them whose token for the API server it may mount; with `spark.enabled` also
    `<release>-spark`.
    """
    secrets: list[Name] = []
    """Secrets that the template of a gate may mount, read into variables, or pull images with."""
    volumes: list[Annotated[str, Meta(pattern=r"^[a-zA-Z]+$")]] = msgspec.field(
        default_factory=lambda: ["configMap", "downwardAPI", "emptyDir"]
    )
    """Kinds of volumes that it may have besides listed Secrets."""
    priority_classes: list[Name] = []
    """Priority classes that it may name."""
    pod_security: Literal["restricted", "baseline"] = "restricted"
    """The Pod Security Standard that its pods must keep."""
    logs: bool = False
    """Copy the last lines of a failed gate's log into the Fork's status and its Event, redacted.
    Whoever may read Forks can then read them.
    """


class Eviction(Shape, frozen=True, kw_only=True):
    enabled: bool = True
    """Let a broker or the leading member hand over before its pod is evicted."""
    deadline_seconds: Annotated[int, Meta(ge=10, le=3_600)] = 600
    """After this a pod is evicted even so."""
    client_ca_secret: Name = ""
    """A Secret with `ca.crt`, the authority of the certificate that your API server shows to
    webhooks; others are then not let in. Empty: anybody may call, and brokers hand over only where
    the operator sees that the node is cordoned or about to be removed.
    """


class Admission(Shape, frozen=True, kw_only=True):
    enabled: bool = True
    """Refuse the deletion of protected forks, and promotions, gates and templates of pods by those
    without the right; gates need it.
    """


class NetworkPolicies(Shape, frozen=True, kw_only=True):
    enabled: bool = True
    """Deny every connection of the release's pods, and of sequencers and shards beside it, but
    those that they need.
    """
    clients: list[Free] = msgspec.field(default_factory=lambda: [{"namespaceSelector": {}}])
    """Who may reach brokers, gateway, sequencers and shards, as peers of a NetworkPolicy."""
    monitoring: list[Free] = msgspec.field(default_factory=lambda: [{"namespaceSelector": {}}])
    """Who may reach the probes' ports, likewise."""
    api_server_ports: list[Annotated[int, Meta(ge=1, le=65_535)]] = msgspec.field(
        default_factory=lambda: [443, 6443, 8443]
    )
    """At which the API server is met: its Service's, and its own behind it."""
    extra_egress: list[Free] = []
    """More rules for what members and brokers may reach, such as a collector of traces."""
    shard_egress: list[Free] = []
    """More rules for what shards may reach: Kafka, where it keeps the records of an Erwin log."""


class Monitoring(Shape, frozen=True, kw_only=True):
    pod_monitors: bool = False
    """Make PodMonitors, for the Prometheus operator."""
    rules: bool = False
    """Make a PrometheusRule with the alerts."""
    dashboards: bool = False
    """Make ConfigMaps with the dashboards, for Grafana's sidecar."""
    interval: Annotated[str, Meta(pattern=r"^[0-9]+(ms|s|m)$")] = "30s"
    """How often pods are asked."""
    labels: Labels = {}
    """Of PodMonitors and rules, as the Prometheus selects them."""
    dashboard_labels: Labels = msgspec.field(default_factory=lambda: {"grafana_dashboard": "1"})
    """Of the dashboards, as the sidecar selects them."""
    runbooks: Annotated[str, Meta(min_length=1)] = "docs/runbooks"
    """Before the name of an alert, it is its runbook's address."""


class PodSecurity(Shape, frozen=True, kw_only=True):
    run_as_user: Annotated[int, Meta(ge=0)] = 65532
    """The user and group of every process, never root; 0: the platform chooses."""


class Values(Shape, frozen=True, kw_only=True):
    """Everything that may be said."""

    cluster: Annotated[str, Meta(pattern=r"^([a-zA-Z0-9][a-zA-Z0-9._-]{0,62})?$")] = ""
    """The log's name in etcd and in the bucket, for ever; empty: `<namespace>-<release>`."""
    images: Images = Images()
    """What runs."""
    dev: Dev = Dev()
    """For a trial on one machine."""
    etcd: Etcd = Etcd()
    """Where the metadata's journal is."""
    s3: S3 = S3()
    """Where the records are."""
    tls: Tls = Tls()
    """Certificates, between all parts and towards clients."""
    auth: Auth = Auth()
    """Who may do what."""
    metadata: Metadata = Metadata()
    """The metadata members."""
    brokers: Brokers = Brokers()
    """The pool of brokers."""
    gateway: Gateway = Gateway()
    """HTTP before the brokers."""
    belfast: Belfast = Belfast()
    """What SequencerSets and ShardGroups beside the release have in common."""
    erwin: Erwin = Erwin()
    """What Erwin logs beside the release have in common."""
    operator: Operator = Operator()
    """The operator."""
    gates: Gates = Gates()
    """Which Jobs promotion gates may run."""
    spark: Spark = Spark()
    """Jobs of Spark, beside the release."""
    eviction: Eviction = Eviction()
    """What happens when a node is drained."""
    admission: Admission = Admission()
    """ValidatingAdmissionPolicies."""
    network_policies: NetworkPolicies = NetworkPolicies()
    """Who may reach whom."""
    monitoring: Monitoring = Monitoring()
    """For Prometheus and Grafana."""
    pod_security: PodSecurity = PodSecurity()
    """What every pod runs as."""
    settings: dict[str, int | bool | str] = {}
    """Settings and limits of members, brokers and gateway by their names, as `linger_ms: 5`."""


_THE_CHARTS = frozenset(
    {
        "cluster",
        "name",
        "port",
        "probe_port",
        "http_port",
        "metadata",
        "advertise",
        "service",
        "service_token",
        "token",
        "peer_token",
        "auth_mode",
        "auth_audience",
        "auth_namespace",
        "auth_server",
        "auth_folder",
        "announce",
        "failpoints",
        "disk_cache",
        "disk_cache_bytes",
        "etcd_endpoints",
        "etcd_user",
        "etcd_password",
        "etcd_ca",
        "etcd_cert",
        "etcd_key",
        "s3_bucket",
        "s3_endpoint",
        "s3_region",
        "s3_prefix",
        "s3_path_style",
        "s3_access_key",
        "s3_secret_key",
        "s3_ca_file",
        "s3_create_bucket",
    }
)
"""Settings that the chart has values of its own for, or that differ from pod to pod."""


def free_settings() -> dict[str, Option]:
    """Those that `settings` takes, by name."""
    found = {option.name: option for kind in KINDS for option in options(kind)}
    return {
        name: option
        for name, option in sorted(found.items())
        if name not in _THE_CHARTS and option.path[0] not in {"tls", "peer_tls"}
    }
