"""The end: every record is there, and uninstalling takes what it says and no more."""

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from tests.cluster.account import Account
from tests.cluster.load import Load
from tests.cluster.site import RELEASE, Site, until
from tests.kubernetes.api_server import ApiServer, Refused


def test_a_doctor_finds_nothing_wrong_and_brings_what_there_is(site: Site, tmp_path: Path) -> None:
    site.until_green()
    file = tmp_path / "report.tar.gz"
    where = ["--kubeconfig", str(site.api.kubeconfig), "-n", site.namespace, "-f", str(file)]
    command = [sys.executable, "-m", "anabranch.cli.main", "doctor", *where]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing is wrong" in done.stdout
    with tarfile.open(file) as archive:
        names = archive.getnames()
    for pod in site.parts("operator") + site.parts("broker") + site.parts("metadata"):
        name = pod["metadata"]["name"]
        assert f"report/logs/{name}.log" in names
        assert f"report/pages/{name}.metrics" in names


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


def test_a_whole_release_goes_with_its_namespace(
    account: Account, node: ApiServer, root: Path
) -> None:
    """The operator and what it may do go in the same sweep as everything that it tends."""
    release = Site(node)
    release.install()
    release.until_green()
    release.kubectl("apply", "-f", str(root / "examples" / "kubernetes" / "log.yaml"))
    release.until_is("logs", "orders", "Ready")
    what_if = {"metadata": {"name": "what-if"}, "spec": {"parent": {"name": "orders"}}}
    release.apply({"apiVersion": "anabranch.dev/v1alpha1", "kind": "Fork", **what_if})
    release.until_is("forks", "what-if", "Ready")
    with account.step("kubectl delete namespace, with a release in it, until it is gone"):
        node.kubectl("delete", "namespace", release.namespace, "--wait=false")

        def is_gone() -> bool:
            try:
                node.ask("GET", f"/api/v1/namespaces/{release.namespace}")
            except Refused as refused:
                return refused.code == 404
            return False

        until(is_gone, "the namespace is gone")
