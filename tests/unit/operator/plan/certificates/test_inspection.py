"""Certificates that others provide: whom clients are told to trust, and what people must mend."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch_operator.plan.certificates.facts import (
    CONFIG_MAP,
    SECOND,
    SECRET,
    Certificate,
    CertificateSettings,
    Finding,
    Holdings,
    Leaf,
    Mode,
    Publish,
    Shown,
    TrustBundle,
)
from anabranch_operator.plan.certificates.inspection import inspect
from anabranch_operator.plan.engine.objects import Ref

DAY = 86_400 * SECOND
NOW = 100 * DAY
NAMES = ("*.demo.svc", "orders.demo.svc", "127.0.0.1")
WANTED = CertificateSettings(
    mode=Mode.PROVIDED, leaves=(Leaf(secret="brokers", names=NAMES),), bundle="trust"
)
HERE = Ref(SECRET, "demo", "brokers")
EVERYWHERE = Ref(CONFIG_MAP, "demo", "trust")


def certificate(
    name: str = "leaf",
    *,
    issuer: str = "root",
    begins: int = -1,
    ends: int = 90,
    names: tuple[str, ...] = NAMES,
) -> Certificate:
    """`begins` and `ends` are in days from now."""
    return Certificate(name, issuer, NOW + begins * DAY, NOW + ends * DAY, names)


def seen(
    shown: Certificate | None, *roots: Certificate, told: tuple[Certificate, ...] = ()
) -> Holdings:
    return Holdings(
        shown=() if shown is None else (Shown("brokers", shown),),
        told=(TrustBundle(HERE, roots), TrustBundle(EVERYWHERE, told)),
        looked_at=NOW,
        places=(EVERYWHERE,),
    )


@pytest.mark.parametrize(
    ("shown", "says"),
    [
        (certificate(), None),
        (None, "isn't there: provide it, with tls.crt, tls.key and ca.crt"),
        (certificate(ends=0), "has a certificate that has ended: renew it"),
        (certificate(begins=1), "isn't valid yet: check the clocks"),
        (certificate(issuer=""), "isn't issued by its ca.crt: provide them together"),
        (certificate(names=NAMES[:2]), "has a certificate without 127.0.0.1: issue it for these"),
        (certificate(names=("*.demo.svc", "127.0.0.1")), None),
        (certificate(names=("127.0.0.1",)), "without *.demo.svc, orders.demo.svc"),
    ],
)
def test_what_people_must_mend_is_said_of_its_secret(
    shown: Certificate | None, says: str | None
) -> None:
    found = inspect(NOW, WANTED, seen(shown, certificate("root"), told=(certificate("root"),)))
    if says is None:
        assert found.findings == ()
        return
    (finding,) = found.findings
    assert finding.object == "Secret brokers"
    assert says in finding.says


def test_a_secret_that_can_not_be_read_says_what_is_wrong_with_it() -> None:
    holdings = Holdings(shown=(Shown("brokers", None, "holds no key"),), looked_at=NOW)
    found = inspect(NOW, WANTED, holdings)
    assert found.findings == (Finding("Secret brokers", "holds no key"),)


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.integers(-3, 3)), max_size=5),
    st.lists(st.sampled_from("abcd"), unique=True, max_size=4),
)
def test_clients_are_told_of_every_authority_that_still_lives(
    roots: list[tuple[str, int]], told: list[str]
) -> None:
    given_roots = [certificate(name, ends=ends) for name, ends in roots]
    before = tuple(certificate(name) for name in sorted(told))
    found = inspect(NOW, WANTED, seen(certificate(), *given_roots, told=before))
    alive = tuple(sorted({name for name, ends in roots if ends > 0}))
    published = [each for each in found.actions if isinstance(each, Publish)]
    if not alive or alive == tuple(sorted(told)):
        assert published == [], "nobody is told to trust nobody"
    else:
        (action,) = published
        assert (action.ref, action.bundle) == (EVERYWHERE, alive)


@given(st.sampled_from(["a.demo.svc", "a.b.demo.svc", "demo.svc", "*.demo.svc", "127.0.0.1", "a"]))
def test_a_star_stands_for_the_first_label_only(name: str) -> None:
    wanted = CertificateSettings(
        mode=Mode.PROVIDED, leaves=(Leaf(secret="brokers", names=(name,)),), bundle="trust"
    )
    found = inspect(NOW, wanted, seen(certificate(names=("*.demo.svc",)), certificate("root")))
    covered = name in {"a.demo.svc", "*.demo.svc"}
    assert (found.findings == ()) == covered


def test_the_next_look_is_taken_in_time() -> None:
    found = inspect(NOW + 5, WANTED, seen(certificate(), certificate("root")))
    assert found.wake_at == NOW + WANTED.look_s * SECOND
