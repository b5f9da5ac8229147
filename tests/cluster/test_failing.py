"""Processes killed and pods deleted, while somebody appends."""

from tests.cluster.account import Account
from tests.cluster.load import Load
from tests.cluster.site import RELEASE, Site, kill, until


def restarts(site: Site, name: str) -> int:
    (status,) = site.get("pods", name)["status"]["containerStatuses"]
    return status["restartCount"]


def until_replaced(site: Site, component: str, before: dict[str, str]) -> None:
    """As many as before, and one of them isn't of before."""

    def look() -> bool:
        now = site.uids(component)
        fresh = set(now.values()) - set(before.values())
        return len(now) >= len(before) and bool(fresh)

    until(look, f"another {component}")


def test_a_broker_that_is_killed_comes_back(site: Site, account: Account, load: Load) -> None:
    name = site.get("logs", "orders")["status"]["broker"]
    before = restarts(site, name)
    with account.step("kill -9 of the broker that serves the log"):
        kill(site.get("pods", name))
        until(lambda: restarts(site, name) > before, "it is begun anew")
        load.goes_on()
        site.until_green()
        site.until_is("logs", "orders", "Ready")


def test_a_broker_whose_pod_is_deleted_is_replaced(
    site: Site, account: Account, load: Load
) -> None:
    name = site.get("logs", "orders")["status"]["broker"]
    before = site.uids("broker")
    with account.step("deletion of the pod of the broker that serves the log"):
        site.delete("pods", name)
        until_replaced(site, "broker", before)
        load.goes_on()
        site.until_green()


def test_a_leading_member_that_is_deleted_is_replaced(
    site: Site, account: Account, load: Load
) -> None:
    leader, before = site.leader_of_members(), site.uids("metadata")
    with account.step("deletion of the pod of the metadata's leader"):
        site.delete("pods", leader)
        until(lambda: site.leader_of_members() != leader, "another leads")
        load.goes_on()
        until_replaced(site, "metadata", before)
        site.until_green()


def test_a_leading_member_that_is_killed_is_succeeded(
    site: Site, account: Account, load: Load
) -> None:
    leader = site.leader_of_members()
    with account.step("kill -9 of the metadata's leader"):
        kill(site.get("pods", leader))
        load.goes_on()
        site.until_green()


def test_an_operator_that_is_killed_is_succeeded(site: Site, account: Account, load: Load) -> None:
    before, pods = site.holder(), site.uids("broker", "metadata", "gateway")
    with account.step("kill -9 of the operator that acts, until another does"):
        kill(site.get("pods", acting(site)))
        until(lambda: site.holder() not in ("", before), "another acts")
    assert declared_anew(site, "after-the-kill")
    assert site.uids("broker", "metadata", "gateway") == pods
    load.goes_on()
    site.until_green()


def test_operators_that_are_deleted_are_replaced(site: Site, account: Account, load: Load) -> None:
    before, pods = site.uids("operator"), site.uids("broker", "metadata", "gateway")
    with account.step("deletion of both pods of the operator, until another acts"):
        site.kubectl("delete", "pod", "--wait=false", *before)
        until(lambda: acting(site) in site.uids("operator").keys() - before.keys(), "another acts")
    assert declared_anew(site, "after-the-deletion")
    assert site.uids("broker", "metadata", "gateway") == pods
    load.goes_on()
    site.until_green()


def acting(site: Site) -> str:
    """The pod of the operator that acts."""
    return site.holder().rpartition(".")[0]


def declared_anew(site: Site, name: str) -> bool:
    """The operator acts: what is declared comes to be, and goes again."""
    fork = {
        "apiVersion": "anabranch.dev/v1alpha1",
        "kind": "Fork",
        "metadata": {"name": name},
        "spec": {"parent": {"name": "orders"}},
    }
    site.apply(fork)
    site.until_is("forks", name, "Ready")
    site.delete("forks", name)
    site.until_gone("forks", name)
    return True


def test_a_store_that_was_away_is_waited_for(site: Site, account: Account, load: Load) -> None:
    with account.step("deletion of the pods of etcd and of the S3 server"):
        before = site.uids("etcd", "s3")
        for name in before:
            site.delete("pods", name)
        until_replaced(site, "etcd", {k: v for k, v in before.items() if "etcd" in k})
        load.goes_on()
        site.until_green()
    assert site.get("brokerpools", RELEASE)["status"]["ready"] >= 2
