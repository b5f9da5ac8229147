"""The certificates of a log service: what is wanted, what is there, and what may be done to it.

Nothing here holds a private key. An authority goes by its certificate's fingerprint, and whoever
performs an action finds the key where it lies: in the authority's Secret.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

import msgspec

from anabranch_operator.api.anabranch_names import BadRequest, Nanoseconds, Value
from anabranch_operator.plan.engine.actions import Make
from anabranch_operator.plan.engine.objects import Ref

SECOND = 1_000_000_000
DAY_S = 24 * 60 * 60

Fingerprint = str
"""Names a certificate: its SHA-256, in hex."""

NEW: Fingerprint = "new"
"""An authority that is yet to be made."""


class Mode(StrEnum):
    """Who makes the certificates."""

    SELF = "self"
    CERT_MANAGER = "certManager"
    PROVIDED = "provided"
    OFF = "off"


class Leaf(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A certificate that some processes show."""

    secret: str
    """The Secret that holds it."""

    names: tuple[str, ...]
    """What they are dialed by: DNS names, of which the first label may be `*`, and addresses."""


class CertificateSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the chart wants, by name."""

    mode: Mode = Mode.OFF
    """Who makes the certificates: `self` is the operator; else it checks and publishes only."""

    authority: str = ""
    """The Secret of the operator's own authority; nobody else reads it."""

    bundle: str = ""
    """The ConfigMap from which clients learn whom to trust, as `ca.crt`."""

    leaves: tuple[Leaf, ...] = ()
    """The certificates, each in a Secret of its own."""

    webhook: str = ""
    """The ValidatingWebhookConfiguration that is told whom to trust; empty: none."""

    authority_s: int = 5 * 365 * DAY_S
    """How long an authority lives; at two thirds another begins to take its place."""

    leaf_s: int = 90 * DAY_S
    """How long a certificate lives; it is renewed at two thirds."""

    propagation_s: int = 300
    """How long a changed Secret or ConfigMap may take to be what every process goes by."""

    look_s: int = 600
    """How often they are looked at when nothing is due: they may be deleted or damaged."""

    def __post_init__(self) -> None:
        if self.mode is Mode.OFF:
            return
        if not (self.bundle and self.leaves):
            raise BadRequest("certificates", f"mode {self.mode} needs a bundle and leaves")
        if self.mode is Mode.SELF and not self.authority:
            raise BadRequest("certificates.authority", "mode self keeps its authority in a Secret")
        if self.propagation_s < 1 or self.leaf_s < 6 * self.propagation_s:
            reason = "six times propagation_s, 1 s or more: its last third must outlast a rotation"
            raise BadRequest("certificates.leaf_s", f"must be at least {reason}")
        if self.authority_s < self.leaf_s:
            raise BadRequest("certificates.authority_s", "an authority outlives what it issues")


CONFIG_MAP, SECRET = "ConfigMap", "Secret"
WEBHOOK = "ValidatingWebhookConfiguration"


class Certificate(Value, frozen=True):
    """The facts of one certificate."""

    fingerprint: Fingerprint
    issuer: Fingerprint
    """Which of those that are trusted anywhere has issued it; empty: none of them."""

    not_before: Nanoseconds
    not_after: Nanoseconds
    names: tuple[str, ...] = ()

    @property
    def due_at(self) -> Nanoseconds:
        """Two thirds of its life."""
        return self.not_before + (self.not_after - self.not_before) * 2 // 3


class Authority(Value, frozen=True):
    """The operator's own, as its Secret holds it. At most one of its three phases is not empty:
    all trust `coming` and `issuing`; all are issued anew; `leaving` is trusted no more.
    """

    issuing: Certificate | None = None
    """Issues what is issued now. None: nothing can be before `coming` is trusted everywhere."""

    coming: Certificate | None = None
    """Trusted, and will issue."""

    leaving: tuple[Certificate, ...] = ()
    """Trusted, and issues nothing any more."""

    flaw: str = ""
    """Why it can't be used."""

    is_ours: bool = True
    """The operator has made it, and may make it anew."""

    @property
    def all(self) -> tuple[Certificate, ...]:
        first = tuple(one for one in (self.issuing, self.coming) if one is not None)
        return first + self.leaving


class Shown(Value, frozen=True):
    """A leaf's Secret, as it is."""

    secret: str
    certificate: Certificate | None = None
    """None: it can't be used by anybody, and `flaw` says why."""

    flaw: str = ""
    is_ours: bool = True


class TrustBundle(Value, frozen=True):
    """Whom one place says is to be trusted, and since when what it holds is what it holds."""

    place: Ref
    bundle: tuple[Certificate, ...] = ()
    written_at: Nanoseconds = 0
    is_ours: bool = True


class Holdings(Value, frozen=True):
    """All of it at one time, or the part that an action has changed; what isn't there is left
    out.
    """

    authority: Authority | None = None
    shown: tuple[Shown, ...] = ()
    told: tuple[TrustBundle, ...] = ()
    looked_at: Nanoseconds = 0
    places: tuple[Ref, ...] = ()
    """Where it was looked; none if this is the part that was changed."""


class Inspect(Make, frozen=True, kw_only=True):
    """Look at the authority, at every leaf, and at these places."""

    places: tuple[Ref, ...]


class Arrange(Make, frozen=True, kw_only=True):
    """Let the authority's Secret hold these; the one that is `NEW` is made."""

    issuing: Fingerprint | None
    coming: Fingerprint | None
    leaving: tuple[Fingerprint, ...]
    not_before: Nanoseconds
    not_after: Nanoseconds


class Issue(Make, frozen=True, kw_only=True):
    """Make a key and have it certified by the authority that issues."""

    leaf: Leaf
    issuer: Fingerprint
    bundle: tuple[Fingerprint, ...]
    not_before: Nanoseconds
    not_after: Nanoseconds


class Publish(Make, frozen=True, kw_only=True):
    """Let a place tell these, and nothing else of it change."""

    bundle: tuple[Fingerprint, ...]


CertificateAction = Inspect | Arrange | Issue | Publish


class Finding(Value, frozen=True):
    """Something that the operator doesn't mend: what it is, and what to do."""

    object: str
    says: str


class Course(Value, frozen=True):
    """What to do now, when to look again, and what only people can do."""

    actions: tuple[CertificateAction, ...]
    wake_at: Nanoseconds
    findings: tuple[Finding, ...] = ()


def places(
    wanted: CertificateSettings, namespace: str, others: Sequence[str] = ()
) -> tuple[Ref, ...]:
    """Wherever somebody learns whom to trust; in every namespace a ConfigMap."""
    told = [Ref(CONFIG_MAP, each, wanted.bundle) for each in sorted({namespace, *others})]
    if wanted.mode is Mode.SELF:
        told += [Ref(SECRET, namespace, leaf.secret) for leaf in wanted.leaves]
    if wanted.webhook and wanted.mode is not Mode.CERT_MANAGER:
        told.append(Ref(WEBHOOK, "", wanted.webhook))
    return tuple(told)


def merged(known: Holdings, news: Holdings) -> Holdings:
    """What is known after an action, or after another look."""
    if news.places:
        return news
    shown = {each.secret: each for each in (*known.shown, *news.shown)}
    told = {each.place: each for each in (*known.told, *news.told)}
    return Holdings(
        news.authority or known.authority,
        tuple(shown.values()),
        tuple(told.values()),
        known.looked_at,
        known.places,
    )


def fingerprints(certificates: Iterable[Certificate]) -> tuple[Fingerprint, ...]:
    return tuple(one.fingerprint for one in certificates)


def ends(wanted: CertificateSettings, seen: Holdings) -> Iterator[tuple[str, Nanoseconds]]:
    """When each certificate that is in use ends, by the Secret that holds it, for the metrics."""
    if seen.authority is not None and seen.authority.issuing is not None:
        yield wanted.authority, seen.authority.issuing.not_after
    for shown in seen.shown:
        if shown.certificate is not None:
            yield shown.secret, shown.certificate.not_after
