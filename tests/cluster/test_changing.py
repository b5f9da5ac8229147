"""What people do to a release that is in use: drain, roll, upgrade, have certificates renewed."""

import ssl

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
    """It may make the pool smaller, whenever that has been quiet for long enough."""
    site.until_green()
    before, pods, desired = site.uids("operator"), site.uids(*ALL), _desired(site)
    with account.step("upgrade of the operator alone"):
        site.upgrade("operator.podAnnotations.rolled=once")
        until(lambda: not before.keys() & site.uids("operator"), "others are there")
        site.until_green()
        until(lambda: acting(site) in site.uids("operator"), "one of them acts")
    assert declared_anew(site, "under-the-new-one")
    site.until_green()
    now = site.uids(*ALL)
    assert now.items() <= pods.items()
    assert len(pods) - len(now) == desired - _desired(site)
    load.goes_on()


def test_a_changed_setting_reaches_everybody(site: Site, account: Account, load: Load) -> None:
    before = site.uids(*ALL)
    with account.step("helm upgrade with another setting: every pod is replaced"):
        site.upgrade("settings.patience_ms=50000")
        until(lambda: not _kept(site, before), "every pod is another")
        site.until_green()
    load.goes_on()


def test_certificates_are_renewed_while_all_go_on(site: Site, account: Account, load: Load) -> None:
    """The S3 server of a trial doesn't read renewed files, and so keeps the one that it has."""
    site.hasten_certificates()
    serving = [("broker", 7420), ("gateway", 7421), ("metadata", 7430), ("operator", 9443)]
    places = [(pod["status"]["podIP"], port) for part, port in serving for pod in site.parts(part)]
    before = {place: ssl.get_server_certificate(place, timeout=10) for place in places}
    with account.step("other certificates for brokers, members, gateway and operator"):
        for part in ("broker", "peer", "gateway", "operator"):
            site.delete("secrets", f"{RELEASE}-{part}-tls")
        for place, old in before.items():
            until(
                lambda place=place, old=old: ssl.get_server_certificate(place, timeout=10) != old,
                f"{place} shows another certificate",
            )
    load.goes_on()
    site.until_green()


def test_an_authority_is_replaced_while_all_go_on(site: Site, account: Account, load: Load) -> None:
    """A trial's S3 server doesn't read another certificate, nor its etcd another authority: they
    are begun anew, while all trust both.
    """
    site.hasten_certificates()
    old, shown = _trusted(site), _shown_by_the_store(site)
    with account.step("another certificate authority, until nobody trusts the one before"):
        site.delete("secrets", f"{RELEASE}-ca")
        until(lambda: len(_trusted(site)) == 2, "both are trusted")
        until(lambda: _shown_by_the_store(site) != shown, "the new one has issued")
        for name in site.uids("etcd", "s3"):
            site.delete("pods", name)
        until(lambda: not old & _trusted(site), "only the new one is trusted")
    load.goes_on()
    leader = site.leader_of_members()
    site.delete("pods", leader)
    until(lambda: site.leader_of_members() != leader, "those who trust the new one meet")
    load.goes_on()
    site.until_green()


def _desired(site: Site) -> int:
    """Brokers that the pool's load asks for."""
    return site.get("brokerpools", RELEASE)["status"]["desired"]


def _shown_by_the_store(site: Site) -> str:
    """Once it is begun anew."""
    return site.get("secrets", f"{RELEASE}-s3-tls")["data"]["tls.crt"]


def _trusted(site: Site) -> set[str]:
    """Whom clients are told to trust."""
    text: str = site.get("configmaps", f"{RELEASE}-ca")["data"]["ca.crt"]
    return {each for each in text.split("-----BEGIN CERTIFICATE-----") if each.strip()}


def _kept(site: Site, before: dict[str, str]) -> set[str]:
    return set(before.values()) & set(site.uids(*ALL).values())
