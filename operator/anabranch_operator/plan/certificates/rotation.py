"""What to do about an operator's own authority and what it issues, from what is there.

The promise: whoever goes by what it was told at any time in the last `propagation_s` accepts
whatever was shown at any time in the last `propagation_s`. So an authority goes in three phases,
each of which begins after the one before has reached everybody: the next one is trusted beside it,
then issues all leaves anew, then the one before is trusted no more. Which phase it is isn't written
down: it is what the authority's Secret holds. Deleting a Secret is the way to ask for a rotation: a
leaf's is made anew, and an authority that is lost leaves by the same three phases.
"""

from collections.abc import Iterable, Iterator, Sequence

from anabranch_operator.api.anabranch_names import Nanoseconds
from anabranch_operator.plan.certificates.facts import (
    CONFIG_MAP,
    NEW,
    SECOND,
    SECRET,
    WEBHOOK,
    Arrange,
    Authority,
    Certificate,
    CertificateSettings,
    Course,
    Finding,
    Fingerprint,
    Holdings,
    Issue,
    Leaf,
    Publish,
    TrustBundle,
    fingerprints,
)
from anabranch_operator.plan.engine.objects import Ref

_SKEW_PART = 10
_SKEW_MAX = 3600 * SECOND
"""A certificate begins a tenth of its life, at most an hour, before it is made: clocks differ."""


def rotate(now: Nanoseconds, wanted: CertificateSettings, namespace: str, seen: Holdings) -> Course:
    """The next actions; none if all is as it should be."""
    return _Rotation(now, wanted, namespace, seen).course()


class _Rotation:
    def __init__(
        self,
        now: Nanoseconds,
        wanted: CertificateSettings,
        namespace: str,
        seen: Holdings,
    ) -> None:
        self._now = now
        self._wanted = wanted
        self._namespace = namespace
        self._seen = seen
        self._shown = {each.secret: each for each in seen.shown}
        self._told = {each.place: each for each in seen.told}
        self._propagation = wanted.propagation_s * SECOND

    def course(self) -> Course:
        findings = tuple(self._findings())
        authority = self._seen.authority
        if authority is not None and not authority.is_ours:
            return Course((), self._wake(), findings)
        arrange = self._found() if authority is None or authority.flaw else self._stray(authority)
        if arrange is not None:
            return Course((arrange,), self._wake(), findings)
        assert authority is not None
        issues = tuple(self._issue(authority))
        made = {issue.leaf.secret for issue in issues}
        actions = (*self._tell(authority, made), *issues)
        arrange, at = self._next_phase(authority)
        if arrange is not None:
            actions = (*actions, arrange)
        dues = (certificate.due_at for certificate in self._in_use())
        wake_at = self._wake(at, self._trusted_at(authority), *dues)
        return Course(actions, wake_at, findings)

    # The authority: begun, and taken from phase to phase.

    def _found(self) -> Arrange:
        """There is none, or it was lost. Whoever is trusted by now stays so, and can't issue."""
        told = {one.fingerprint: one for each in self._seen.told for one in each.bundle}
        trusted = self._alive(told[key] for key in sorted(told))
        return self._arrange(None, NEW, trusted) if trusted else self._arrange(NEW, None, ())

    def _stray(self, authority: Authority) -> Arrange | None:
        """What is in use was issued by one that ours doesn't know of: an old copy of the Secret was
        brought back. Nobody may be assumed to trust what it holds.
        """
        known = {one.fingerprint for one in authority.all}
        told = {one.fingerprint: one for each in self._seen.told for one in each.bundle}
        issuers = sorted({certificate.issuer for certificate in self._in_use()} - known)
        strays = self._alive(told[key] for key in issuers if key in told)
        if not strays:
            return None
        able = self._alive(one for one in (authority.issuing, authority.coming) if one is not None)
        coming = able[0].fingerprint if able else NEW
        leaving = (one for one in (*authority.all, *strays) if one.fingerprint != coming)
        return self._arrange(None, coming, self._alive(leaving))

    def _next_phase(self, authority: Authority) -> tuple[Arrange | None, Nanoseconds | None]:
        """What its Secret is to hold next; or when that may be, where it is known."""
        issuing, coming, leaving = authority.issuing, authority.coming, authority.leaving
        if coming is not None:
            before = leaving if issuing is None else (*leaving, issuing)
            at, then = self._trusted_at(authority), (coming.fingerprint, None, before)
        elif issuing is None:
            at, then = self._now, (None, NEW, leaving)
        elif leaving:
            at, then = self._drop_at(authority), (issuing.fingerprint, None, ())
        else:
            at, then = issuing.due_at, (issuing.fingerprint, NEW, ())
        if at is None or at > self._now:
            return None, at
        return self._arrange(then[0], then[1], self._alive(then[2])), None

    def _trusted_at(self, authority: Authority) -> Nanoseconds:
        """When all trust all of it; or, though a place could not be told, when all must be issued
        anew because what is in use is at its end.
        """
        comes = authority.coming or authority.issuing
        ends = [one.not_after for one in authority.all if one is not comes]
        if authority.issuing is None:
            ends += [certificate.not_after for certificate in self._in_use()]
        last = min(ends, default=0) - self._propagation
        told = [self._told.get(place) for place in self._seen.places if self._listens(place)]
        if not all(each is not None and self._is_told(each, authority) for each in told):
            return last
        written = max((each.written_at for each in told if each is not None), default=0)
        return min(written + self._propagation, last)

    def _drop_at(self, authority: Authority) -> Nanoseconds | None:
        """When nobody shows anything any more that was issued by those that leave."""
        if not self._alive(authority.leaving):
            return self._now
        gone = set(fingerprints(authority.leaving))
        if any(certificate.issuer in gone for certificate in self._in_use()):
            return None  # they are issued anew first
        if any(self._is_unusable(leaf.secret) for leaf in self._wanted.leaves):
            return None  # what it held before it was lost may still be shown
        written = (each.written_at for each in self._seen.told if each.place.kind == SECRET)
        return max(written, default=0) + self._propagation

    def _arrange(
        self,
        issuing: Fingerprint | None,
        coming: Fingerprint | None,
        leaving: Sequence[Certificate],
    ) -> Arrange:
        not_before, not_after = self._life(self._wanted.authority_s)
        return Arrange(
            ref=Ref(SECRET, self._namespace, self._wanted.authority),
            issuing=issuing,
            coming=coming,
            leaving=fingerprints(leaving),
            not_before=not_before,
            not_after=not_after,
        )

    # Those who are told whom to trust, and what is shown to them.

    def _tell(self, authority: Authority, made: set[str]) -> Iterator[Publish]:
        for place in self._seen.places:
            if place.kind == SECRET and place.name in made:
                continue
            told = self._told.get(place)
            if self._listens(place) and not (told and self._is_told(told, authority)):
                yield Publish(ref=place, bundle=fingerprints(authority.all))

    def _issue(self, authority: Authority) -> Iterator[Issue]:
        issuer = authority.issuing
        if issuer is None or issuer.not_after <= self._now:
            return
        not_before, not_after = self._life(self._wanted.leaf_s, issuer.not_after)
        for leaf in self._wanted.leaves:
            shown = self._shown.get(leaf.secret)
            if shown is not None and not shown.is_ours:
                continue
            if shown is None or self._is_due(shown.certificate, leaf, authority, not_after):
                yield Issue(
                    ref=Ref(SECRET, self._namespace, leaf.secret),
                    leaf=leaf,
                    issuer=issuer.fingerprint,
                    bundle=fingerprints(authority.all),
                    not_before=not_before,
                    not_after=not_after,
                )

    def _is_due(
        self,
        certificate: Certificate | None,
        leaf: Leaf,
        authority: Authority,
        until: Nanoseconds,
    ) -> bool:
        """One that would end no later isn't made: then it is the authority that must go first. And
        nobody's issuer changes before all trust the other one.
        """
        if certificate is None or certificate.not_after <= self._now:
            return True
        assert authority.issuing is not None
        is_same = certificate.issuer == authority.issuing.fingerprint
        if not is_same and self._trusted_at(authority) > self._now:
            return False
        if set(certificate.names) != set(leaf.names):
            return True
        if not is_same and authority.coming is None:
            return True
        return certificate.due_at <= self._now and certificate.not_after < until

    def _is_told(self, told: TrustBundle, authority: Authority) -> bool:
        """A time yet to come was written by a clock that was wrong: it is written again."""
        if told.written_at > self._now + self._propagation:
            return False
        return set(fingerprints(told.bundle)) == set(fingerprints(authority.all))

    def _listens(self, place: Ref) -> bool:
        return is_writable(place, self._told.get(place))

    def _is_unusable(self, secret: str) -> bool:
        shown = self._shown.get(secret)
        return shown is None or (shown.is_ours and shown.certificate is None)

    def _in_use(self) -> Iterator[Certificate]:
        for shown in self._seen.shown:
            if shown.certificate is not None and shown.certificate.not_after > self._now:
                yield shown.certificate

    def _findings(self) -> Iterator[Finding]:
        fix = "delete it, or choose tls.mode=provided"
        authority = self._seen.authority
        if authority is not None and not authority.is_ours:
            yield Finding(f"Secret {self._wanted.authority}", f"isn't the operator's: {fix}")
        for shown in self._seen.shown:
            if not shown.is_ours:
                yield Finding(f"Secret {shown.secret}", f"isn't the operator's: {fix}")
        yield from strangers(self._seen)

    # Time.

    def _life(
        self, life_s: int, until: Nanoseconds | None = None
    ) -> tuple[Nanoseconds, Nanoseconds]:
        life = life_s * SECOND
        ends = self._now + life
        begins = self._now - min(life // _SKEW_PART, _SKEW_MAX)
        return begins, ends if until is None else min(ends, until)

    def _alive(self, certificates: Iterable[Certificate]) -> tuple[Certificate, ...]:
        return tuple(one for one in certificates if one.not_after > self._now)

    def _wake(self, *times: Nanoseconds | None) -> Nanoseconds:
        look = self._seen.looked_at + self._wanted.look_s * SECOND
        return min([look, *(at for at in times if at is not None and at > self._now)])


def is_writable(place: Ref, told: TrustBundle | None) -> bool:
    """The operator may make or change it; a Secret is made by issuing what it shows."""
    return place.kind == CONFIG_MAP if told is None else told.is_ours


def strangers(seen: Holdings) -> Iterator[Finding]:
    """Places that should tell whom to trust, and can't be made to."""
    told = {each.place: each for each in seen.told}
    for place in seen.places:
        if place.kind == CONFIG_MAP and place in told and not told[place].is_ours:
            yield Finding(str(place), "isn't the operator's: delete it, and it is made anew")
        if place.kind == WEBHOOK and place not in told:
            yield Finding(f"{place.kind} {place}", "isn't there: install the chart's again")
