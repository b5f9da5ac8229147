"""Certificates that others make: the operator checks them, and tells clients whom to trust."""

from collections.abc import Iterator, Sequence

from anabranch_operator.api.anabranch_names import Nanoseconds
from anabranch_operator.plan.certificates.facts import (
    SECOND,
    SECRET,
    Certificate,
    CertificateSettings,
    Course,
    Finding,
    Holdings,
    Publish,
    fingerprints,
)
from anabranch_operator.plan.certificates.rotation import is_writable, strangers


def inspect(now: Nanoseconds, wanted: CertificateSettings, seen: Holdings) -> Course:
    """Nothing of what is shown is ever written; clients trust whoever the Secrets name."""
    named = {
        one.fingerprint
        for each in seen.told
        if each.place.kind == SECRET
        for one in each.bundle
        if one.not_after > now
    }
    bundle = tuple(sorted(named))
    told = {each.place: each for each in seen.told}
    actions = tuple(
        Publish(ref=place, bundle=bundle)
        for place in seen.places
        if bundle and is_writable(place, told.get(place))
        if place not in told or fingerprints(told[place].bundle) != bundle
    )
    findings = (*_flaws(now, wanted, seen), *strangers(seen))
    return Course(actions, seen.looked_at + wanted.look_s * SECOND, findings)


def _flaws(now: Nanoseconds, wanted: CertificateSettings, seen: Holdings) -> Iterator[Finding]:
    shown = {each.secret: each for each in seen.shown}
    for leaf in wanted.leaves:
        there = shown.get(leaf.secret)
        if there is None:
            says = "isn't there: provide it, with tls.crt, tls.key and ca.crt"
        elif there.certificate is None:
            says = there.flaw
        else:
            says = _flaw(now, there.certificate, leaf.names)
        if says:
            yield Finding(f"Secret {leaf.secret}", says)


def _flaw(now: Nanoseconds, certificate: Certificate, names: Sequence[str]) -> str:
    if certificate.not_after <= now:
        return "has a certificate that has ended: renew it"
    if certificate.not_before > now:
        return "has a certificate that isn't valid yet: check the clocks"
    if not certificate.issuer:
        return "has a certificate that isn't issued by its ca.crt: provide them together"
    missing = [name for name in names if not _covers(certificate.names, name)]
    if missing:
        return f"has a certificate without {', '.join(missing)}: issue it for these names too"
    return ""


def _covers(names: Sequence[str], name: str) -> bool:
    """A `*` stands for one label, the first."""
    _, dot, rest = name.partition(".")
    return name in names or (bool(dot) and f"*.{rest}" in names)
