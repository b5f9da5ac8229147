"""The end: every record is there, and uninstalling takes what it says and no more."""

import pytest
from tests.cluster.account import Account
from tests.cluster.load import Load
from tests.cluster.site import RELEASE, Site, until


@pytest.mark.usefixtures("results")
def test_every_acknowledged_record_is_there_in_order(load: Load) -> None:
    load.end()
    assert load.appended > 0


def test_uninstalling_leaves_what_was_declared(site: Site, account: Account) -> None:
    declared = {each["metadata"]["uid"] for each in (*site.all("logs"), *site.all("forks"))}
    assert declared
    with account.step("helm uninstall, until its pods are gone"):
        site.helm("uninstall", RELEASE)
        release = {"app.kubernetes.io/instance": RELEASE}
        until(lambda: not site.all("pods", **release), "all its pods are gone")
    kept = {each["metadata"]["uid"] for each in (*site.all("logs"), *site.all("forks"))}
    assert kept == declared
    assert site.all("brokerpools") == []
    until(lambda: not site.all("persistentvolumeclaims"), "its volumes too")
