"""Forks judged by jobs of Spark, whose executors are pods that read past the brokers."""

import http.client
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from tests.cluster.account import Account
from tests.cluster.load import Load
from tests.cluster.site import RELEASE, Document, Site, condition, until
from tests.cluster.test_deciding import EXAMPLES, appended, holds, made

pytestmark = pytest.mark.usefixtures("load", "spark")

GATE = "spark-gate.yaml"
FORK = "orders--restocked"
ENOUGH_S = 600.0
"""For a Job: Java and two Pythons start, on what the release leaves of a small machine."""


@pytest.fixture(scope="module")
def spark(site: Site) -> None:
    """The chart's accounts and policies for Spark."""
    site.upgrade("spark.enabled=true", "spark.executors.instances=1", "spark.executors.cpu=100m")
    site.until_green()
    site.account("client", "append", "read")


@pytest.fixture
def fork(site: Site, root: Path) -> Iterator[str]:
    """The example's fork, taken away afterwards."""
    name = made(site, root, GATE)
    yield name
    site.delete("forks", name)
    site.until_gone("forks", name)


def test_good_data_are_promoted_by_a_job_whose_executors_read_past_the_brokers(
    site: Site, account: Account, load: Load, fork: str
) -> None:
    appended(site, FORK, '{"item": "plum", "price": 9}')
    appended(site, FORK, '{"item": "fig", "price": 0.5}')
    read, signed = counted(site, "bytes_read"), counted(site, "signed_bytes")
    with account.step("a gate of Spark, one executor: good data are promoted"):
        site.patch("forks", fork, state="Promoted")
        pods = until_executor(site, fork)
        found = until_phase_of_spark(site, fork, "Promoted")
    assert condition(found, "GatePassed")["status"] == "True"
    assert found["status"]["gate"]["ownRecords"] == 2
    assert counted(site, "bytes_read") == read, "no record came through a broker"
    assert counted(site, "signed_bytes") > signed
    (executor,) = pods
    assert executor["spec"]["serviceAccountName"] == f"{RELEASE}-spark-executor"
    (owner,) = executor["metadata"]["ownerReferences"]
    assert owner["name"].startswith(f"gate-{fork}-"), "it goes with the Job's pod"
    assert holds(site, "orders", '{"item": "fig", "price": 0.5}')
    load.goes_on()


def test_no_executor_outlives_its_job(site: Site) -> None:
    until(lambda: not site.all("pods", **{"spark-role": "executor"}), "executors are gone")


def test_bad_data_are_held_and_the_condition_says_why(
    site: Site, account: Account, fork: str
) -> None:
    appended(site, FORK, '{"item": "plum", "price": 9}')
    appended(site, FORK, '{"item": "pear", "price": -5}')
    with account.step("a gate of Spark, one executor: bad data are held"):
        site.patch("forks", fork, state="Promoted")
        said = until_decided(site, fork)
    assert said["status"] == "False"
    assert said["reason"] == "GateFailed"
    assert "price is no debt" in said["message"], "the expectation's name"
    assert site.get("forks", fork)["status"]["phase"] != "Squashed"
    assert not holds(site, "orders", '{"item": "pear", "price": -5}')
    assert holds(site, FORK, '{"item": "pear", "price": -5}'), "it is there to be looked at"


def test_a_fork_that_moved_is_judged_again(site: Site, account: Account, fork: str) -> None:
    record = '{"item": "quince", "price": 2}'
    appended(site, FORK, record)
    with account.step("a gate of Spark whose fork moves: judged again, and promoted"):
        with appending(site, FORK, record):
            site.patch("forks", fork, state="Promoted")
            until_moved(site, fork)
        found = until_phase_of_spark(site, fork, "Promoted")
    assert found["status"]["gate"]["attempt"] > 1
    done = site.run("anabranch read orders --format raw --timeout 120s")
    assert done.said.splitlines().count(record) == found["status"]["gate"]["ownRecords"]


def test_a_program_of_ones_own_runs_as_the_example_shows(
    site: Site, account: Account, root: Path
) -> None:
    with account.step("a program with Spark, one executor"):
        said = job(site, root, "spark-read.yaml", "Complete")
    assert re.search(r"\|records\s*\|", said)
    assert re.search(r"\|20\d\d-\d\d-\d\d \d\d:00:00\s*\|\d+", said)


def test_an_executor_without_the_right_reads_nothing(site: Site, root: Path) -> None:
    """The driver's right doesn't help it: it shows a token of its own."""
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{site.namespace}/rolebindings"
    binding = site.api.ask("GET", f"{path}/{RELEASE}-spark")
    both = binding["subjects"]
    driver = [each for each in both if each["name"] == f"{RELEASE}-spark"]
    merge = "application/merge-patch+json"
    site.api.ask("PATCH", f"{path}/{RELEASE}-spark", {"subjects": driver}, content=merge)
    try:
        said = job(site, root, "spark-read.yaml", "Failed")
    finally:
        site.api.ask("PATCH", f"{path}/{RELEASE}-spark", {"subjects": both}, content=merge)
    assert f"system:serviceaccount:{site.namespace}:{RELEASE}-spark-executor" in said


def until_phase_of_spark(site: Site, name: str, phase: str) -> Document:
    def look() -> Document | None:
        found = unfailed(site, name)
        return found if found.get("status", {}).get("phase") == phase else None

    return until(look, f"{name} is {phase}", ENOUGH_S)


def unfailed(site: Site, name: str) -> Document:
    """The fork, whose gate hasn't failed."""
    found = site.get("forks", name)
    said = condition(found, "GatePassed")
    wrong = said.get("reason") in ("GateFailed", "GateInvalid", "GateReportInvalid")
    assert not wrong, f"{said}\n{last_words(site)}"
    return found


def until_decided(site: Site, name: str) -> Document:
    def look() -> Document | None:
        said = condition(site.get("forks", name), "GatePassed")
        return said if said.get("reason") in ("GateFailed", "GateSucceeded") else None

    return until(look, f"the gate of {name} is decided", ENOUGH_S)


def until_moved(site: Site, name: str) -> None:
    def look() -> bool:
        return condition(unfailed(site, name), "GatePassed").get("reason") == "ForkMoved"

    until(look, f"{name} has moved", ENOUGH_S)


def until_executor(site: Site, name: str) -> list[Document]:
    def look() -> list[Document]:
        unfailed(site, name)
        found = site.all("pods", **{"spark-role": "executor"})
        return [each for each in found if each["status"].get("phase") == "Running"]

    return until(look, "an executor runs", ENOUGH_S)


@contextmanager
def appending(site: Site, log: str, record: str) -> Iterator[None]:
    """Somebody appends to it all the while."""
    script = f"while true; do anabranch append {log} '{record}' >/dev/null; done"
    site.apply(site.program("restocking", ["sh", "-ec", script], RELEASE, "client"))
    try:
        yield
    finally:
        site.kubectl("delete", "pod", "restocking", "--wait=true", "--grace-period=1")


def job(site: Site, root: Path, example: str, ends: str) -> str:
    """The log of an example's Job, which ends so."""
    text = (root / EXAMPLES / example).read_text(encoding="utf-8")
    found = list(yaml.safe_load_all(text.replace(".default.svc", f".{site.namespace}.svc")))
    (wanted,) = (each for each in found if each["kind"] == "Job")
    name = wanted["metadata"]["name"]
    site.apply(*found)

    def look() -> str | None:
        conditions = site.get("jobs", name).get("status", {}).get("conditions", ())
        kinds = {each["type"] for each in conditions if each["status"] == "True"}
        if not kinds & {"Complete", "Failed"}:
            return None
        said = site.kubectl("logs", f"job/{name}")
        assert ends in kinds, said
        return said

    try:
        return until(look, f"{name} ends", ENOUGH_S)
    finally:
        site.kubectl("delete", "job", name, "--wait=true")


def counted(site: Site, name: str) -> int:
    """Of all brokers."""
    return sum(_counter(pod["status"]["podIP"], name) for pod in site.parts("broker"))


def _counter(address: str, name: str) -> int:
    connection = http.client.HTTPConnection(address, 7422, timeout=10)
    try:
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    finally:
        connection.close()
    found = re.search(rf"(?m)^anabranch_broker_{name}_total(?:\{{.*?\}})? (\S+)$", text)
    assert found is not None, text[:2_000]
    return int(float(found[1]))


def last_words(site: Site) -> str:
    """Of the newest gate's driver."""
    pods = [
        pod
        for pod in site.all("pods", **{"anabranch.dev/role": "gate"})
        if pod["spec"].get("serviceAccountName") == f"{RELEASE}-spark"
    ]
    newest = max(pods, key=lambda pod: pod["metadata"]["creationTimestamp"], default=None)
    return site.kubectl("logs", newest["metadata"]["name"])[-4_000:] if newest else ""
