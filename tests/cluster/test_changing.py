"""What people do to a release that is in use: drain, roll, upgrade, have certificates renewed."""

import ssl
from collections.abc import Callable

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from tests.cluster.account import Account
from tests.cluster.load import Load
from tests.cluster.site import RELEASE, Site, until
from tests.cluster.test_failing import acting, declared_anew
from tests.kubernetes.node import NAME

ALL = ("broker", "metadata", "gateway")


def replaced(site: Site, component: str) -> list[str]:
    """Names of pods in the order in which others took their places; all of them."""
    before = site.uids(component)
    gone: list[str] = []

    def look() -> bool:
        now = site.uids(component)
        gone.extend(
            name for name, uid in before.items() if name not in gone and now.get(name) != uid
        )
        return len(gone) == len(before)

    until(look, f"every {component} is replaced")
    return gone


def test_a_drain_waits_until_brokers_have_handed_over(
    site: Site, account: Account, load: Load
) -> None:
    before = site.uids("broker")
    try:
        with account.step("kubectl drain of the node, brokers only"):
            said = site.drain(NAME, f"anabranch.dev/pool={RELEASE}")
    finally:
        site.api.kubectl("uncordon", NAME)
    assert "hands over what it serves first" in said, "it was put off"
    assert not before.items() & site.uids("broker").items()
    load.goes_on()
    site.until_green()


def test_brokers_are_rolled(site: Site, account: Account, load: Load) -> None:
    before = site.uids("broker")
    with account.step("roll-out of the brokers"):
        site.upgrade("brokers.podAnnotations.rolled=once")
        site.until_green()
    now = site.uids("broker")
    assert not set(before.values()) & set(now.values())
    load.goes_on()


def test_members_are_rolled_the_leader_last(site: Site, account: Account, load: Load) -> None:
    leader, brokers = site.leader_of_members(), site.uids("broker")
    with account.step("roll-out of the metadata members"):
        site.upgrade("metadata.podAnnotations.rolled=once")
        order = replaced(site, "metadata")
        site.until_green()
    assert order[-1] == leader
    assert site.uids("broker") == brokers
    load.goes_on()


def test_another_operator_rolls_nothing(site: Site, account: Account, load: Load) -> None:
    before, pods = site.uids("operator"), site.uids(*ALL)
    with account.step("upgrade of the operator alone"):
        site.upgrade("operator.podAnnotations.rolled=once")
        until(lambda: not before.keys() & site.uids("operator"), "others are there")
        site.until_green()
        until(lambda: acting(site) in site.uids("operator"), "one of them acts")
    assert declared_anew(site, "under-the-new-one")
    assert site.uids(*ALL) == pods
    load.goes_on()


def test_a_changed_setting_reaches_everybody(site: Site, account: Account, load: Load) -> None:
    before = site.uids(*ALL)
    with account.step("helm upgrade with another setting: every pod is replaced"):
        site.upgrade("settings.patience_ms=50000")
        until(lambda: not _kept(site, before), "every pod is another")
        site.until_green()
    load.goes_on()


def test_an_authority_is_replaced_while_all_go_on(site: Site, account: Account, load: Load) -> None:
    """The dev stores don't read renewed files, so they are begun anew when all trust both."""
    old = _bundle(site)
    assert len(old) == 1
    with account.step("another certificate authority, until nobody trusts the old one"):
        site.hasten_certificates()
        site.delete("secrets", f"{RELEASE}-ca")
        until(lambda: len(_bundle(site)) == 2, "both are trusted")
        until(lambda: not old & _bundle(site), "only the new one is")
    (new,) = _bundle(site)
    for component, port in (("broker", 7420), ("gateway", 7421)):
        for pod in site.parts(component):
            shown = _until_shown(pod["status"]["podIP"], port, _signed_by(new))
            assert shown.issuer == new.subject
    load.goes_on()


def _kept(site: Site, before: dict[str, str]) -> set[str]:
    return set(before.values()) & set(site.uids(*ALL).values())


def _bundle(site: Site) -> set[x509.Certificate]:
    """Whom clients are told to trust."""
    text = site.get("configmaps", f"{RELEASE}-ca")["data"]["ca.crt"]
    return set(x509.load_pem_x509_certificates(text.encode()))


def _signed_by(authority: x509.Certificate) -> Callable[[x509.Certificate], bool]:
    def check(leaf: x509.Certificate) -> bool:
        try:
            leaf.verify_directly_issued_by(authority)
        except (ValueError, InvalidSignature):
            return False
        return True

    return check


def _until_shown(
    address: str, port: int, wanted: Callable[[x509.Certificate], bool]
) -> x509.Certificate:
    def look() -> x509.Certificate | None:
        text = ssl.get_server_certificate((address, port), timeout=10)
        shown = x509.load_pem_x509_certificate(text.encode())
        return shown if wanted(shown) else None

    return until(look, f"{address}:{port} shows a certificate of the new authority")
