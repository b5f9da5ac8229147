"""The Secrets and ConfigMaps of a cluster on a virtual clock, and whoever still goes by old ones.

A process goes by what it was given up to `propagation_s` ago, even if that was deleted since. What
the promise of `plan/certificates/rotation.py` is about is checked at every change.
"""

from collections.abc import Iterable, Iterator
from itertools import count
from typing import TypeVar

import msgspec

from anabranch_operator.plan.certificates.facts import (
    NEW,
    SECOND,
    SECRET,
    Arrange,
    Authority,
    Certificate,
    CertificateAction,
    CertificateSettings,
    Course,
    Holdings,
    Inspect,
    Issue,
    Leaf,
    Mode,
    Publish,
    Shown,
    TrustBundle,
    places,
)
from anabranch_operator.plan.certificates.rotation import rotate
from anabranch_operator.plan.engine.objects import Ref

PROPAGATION_S = 10
SETTINGS = CertificateSettings(
    mode=Mode.SELF,
    authority="demo-ca",
    bundle="demo-ca",
    leaves=(
        Leaf(secret="demo-peer-tls", names=("*.demo-metadata.x.svc",)),
        Leaf(secret="demo-broker-tls", names=("*.demo-brokers.x.svc", "demo.x.svc")),
    ),
    authority_s=80 * PROPAGATION_S,
    leaf_s=24 * PROPAGATION_S,
    propagation_s=PROPAGATION_S,
    look_s=20 * PROPAGATION_S,
)
PLACES = places(SETTINGS, "x", ["y"])
P = PROPAGATION_S * SECOND

T = TypeVar("T")


class CertificateHarness:
    """The cluster, without Kubernetes and without keys."""

    def __init__(self, settings: CertificateSettings = SETTINGS) -> None:
        self.settings = settings
        self.now = 1_000_000 * SECOND
        self.authority: Authority | None = None
        self.shown: dict[str, Shown] = {}
        self.told: dict[Ref, TrustBundle] = {}
        self.authorities = 0
        self.issued = 0
        self._serial = count(1)
        self._known: dict[str, Certificate] = {}
        self._shown_since: dict[str, list[tuple[int, Certificate]]] = {}
        self._told_since: dict[Ref, list[tuple[int, tuple[Certificate, ...]]]] = {}

    @property
    def holdings(self) -> Holdings:
        """As whoever looks at it now finds it."""
        shown, told = tuple(self.shown.values()), tuple(self.told.values())
        where = places(self.settings, "x", ["y"])
        return Holdings(self.authority, shown, told, self.now, where)

    def course(self) -> Course:
        return rotate(self.now, self.settings, "x", self.holdings)

    def operate(self, at_most: int = 1_000) -> int:
        """Until nothing is to be done, or the operator dies after so many actions."""
        done = 0
        while actions := self.course().actions:
            for action in actions:
                if done == at_most:
                    return done
                self.perform(action)
                done += 1
            assert done < 100, "it never converges"
        return done

    def perform(self, action: CertificateAction) -> None:
        match action:
            case Arrange():
                self._arrange(action)
            case Issue():
                self._issue(action)
            case Publish():
                self._tell(action.ref, action.bundle)
            case Inspect():
                raise AssertionError("the desk asks for this, not the rotation")
        self.check()

    def live(self, until: int) -> None:
        """The operator is there, and acts when it said it would."""
        while self.now < until:
            self.operate()
            self.go_on(min(self.course().wake_at, until) - self.now)

    def go_on(self, ns: int) -> None:
        """Time passes; nobody may notice."""
        until = self.now + ns
        while self.now < until:
            self.now = min(until, self.now + P // 4)
            self.check()

    def check(self) -> None:
        """Everybody accepts everybody."""
        for secret, versions in self._shown_since.items():
            for certificate in self._in_force(versions):
                assert certificate.not_before <= self.now < certificate.not_after, secret
                issuer = self._known[certificate.issuer]
                assert issuer.not_before <= self.now < issuer.not_after
                for place, bundles in self._told_since.items():
                    for bundle in self._in_force(bundles):
                        assert issuer in bundle, f"{place} doesn't trust what {secret} shows"

    def _in_force(self, versions: list[tuple[int, T]]) -> Iterator[T]:
        for i, (_, version) in enumerate(versions):
            if i + 1 == len(versions) or versions[i + 1][0] > self.now - P:
                yield version

    def _arrange(self, action: Arrange) -> None:
        held = {one.fingerprint: one for one in self.authority.all} if self.authority else {}
        told = {one.fingerprint: one for each in self.told.values() for one in each.bundle}

        def take(fingerprint: str | None) -> Certificate | None:
            if fingerprint == NEW:
                self.authorities += 1
                return self._make("", action.not_before, action.not_after)
            return None if fingerprint is None else held[fingerprint]

        self.authority = Authority(
            issuing=take(action.issuing),
            coming=take(action.coming),
            leaving=tuple((held | told)[each] for each in action.leaving),
        )

    def _issue(self, action: Issue) -> None:
        assert self.authority is not None
        assert self.authority.issuing is not None
        assert self.authority.issuing.fingerprint == action.issuer
        certificate = self._make(action.issuer, action.not_before, action.not_after)
        certificate = msgspec.structs.replace(certificate, names=action.leaf.names)
        secret = action.leaf.secret
        self.shown[secret] = Shown(secret, certificate)
        self._shown_since.setdefault(secret, []).append((self.now, certificate))
        self._tell(Ref(SECRET, "x", secret), action.bundle)
        self.issued += 1

    def _tell(self, place: Ref, bundle: Iterable[str]) -> None:
        told = tuple(self._known[each] for each in bundle)
        self.told[place] = TrustBundle(place, told, self.now)
        self._told_since.setdefault(place, []).append((self.now, told))

    def _make(self, issuer: str, not_before: int, not_after: int) -> Certificate:
        made = Certificate(f"{next(self._serial):04}", issuer, not_before, not_after)
        self._known[made.fingerprint] = made
        return made

    # What befalls it.

    def lose(self, place: Ref) -> None:
        self.told.pop(place, None)
        if place.kind == SECRET:
            self.shown.pop(place.name, None)

    def damage(self, secret: str) -> None:
        if secret in self.shown:
            self.shown[secret] = Shown(secret, None, "has no key")
