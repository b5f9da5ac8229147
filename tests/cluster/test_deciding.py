"""Forks promoted, judged, approved, squashed: by patches, Jobs and deletions."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cluster.account import Account
from tests.cluster.load import Load
from tests.cluster.site import RELEASE, Document, Site, condition, until
from tests.kubernetes.api_server import Refused, Rule

pytestmark = pytest.mark.usefixtures("load")

EXAMPLES = Path("examples") / "kubernetes"
_EDITS = (Rule(("get", "patch"), ("anabranch.dev",), ("forks",)),)


def until_phase(site: Site, name: str, phase: str) -> Document:
    def look() -> Document | None:
        found = site.get("forks", name)
        return found if found.get("status", {}).get("phase") == phase else None

    return until(look, f"{name} is {phase}")


def made(site: Site, root: Path, example: str, **changed: Any) -> str:
    """A fork of an example, ready."""
    found = list(yaml.safe_load_all((root / EXAMPLES / example).read_text(encoding="utf-8")))
    fork = next(each for each in found if each["kind"] == "Fork")
    fork["spec"] |= changed
    site.apply(*found)
    name = fork["metadata"]["name"]
    site.until_is("forks", name, "Ready")
    return name


def appended(site: Site, log: str, value: str) -> None:
    done = site.run(f"anabranch append {log} '{value}'")
    assert done.code == 0, done.said


def holds(site: Site, log: str, value: str) -> bool:
    done = site.run(f"anabranch read {log} --format raw --timeout 120s")
    assert done.code == 0, done.said
    return value in done.said.splitlines()


def test_a_patch_promotes(site: Site, account: Account, load: Load) -> None:
    appended(site, "orders--what-if", "9 plums")
    with account.step("a patch promotes a fork"):
        site.patch("forks", "what-if", state="Promoted")
        until_phase(site, "what-if", "Promoted")
    assert holds(site, "orders", "9 plums")
    load.goes_on()


def test_a_gate_that_succeeds_promotes(site: Site, account: Account, root: Path) -> None:
    name = made(site, root, "gate.yaml")
    appended(site, "orders--repriced", '{"price": 5}')
    with account.step("a gate's Job succeeds, and its fork is promoted"):
        site.patch("forks", name, state="Promoted")
        found = until_phase(site, name, "Promoted")
    assert condition(found, "GatePassed")["status"] == "True"
    assert holds(site, "orders", '{"price": 5}')
    site.delete("forks", name)
    site.until_gone("forks", name)


def test_a_gate_that_fails_squashes_and_says_why(
    site: Site, account: Account, load: Load, root: Path
) -> None:
    name = made(site, root, "gate.yaml")
    appended(site, "orders--repriced", '{"price": -5}')
    with account.step("a gate's Job fails, and its fork is squashed"):
        site.patch("forks", name, state="Promoted")
        found = until_phase(site, name, "Squashed")
    said = condition(found, "GatePassed")
    assert said["status"] == "False"
    assert '{"price": -5}' in said["message"], "the last lines of the Job's log"
    assert not holds(site, "orders", '{"price": -5}')
    load.goes_on()


def test_what_waits_for_approval_is_promoted_by_it(
    site: Site, account: Account, root: Path
) -> None:
    name = made(site, root, "approval.yaml")
    appended(site, "orders--proposal", "1 fig")
    site.patch("forks", name, state="Promoted")
    until_phase(site, name, "AwaitingApproval")
    with account.step("an approval promotes a fork"):
        site.patch("forks", name, approved=True)
        until_phase(site, name, "Promoted")
    assert holds(site, "orders", "1 fig")


def test_who_may_not_promote_can_not_approve(site: Site) -> None:
    site.apply(_fork("guarded", promotable=True))
    site.until_is("forks", "guarded", "Ready")
    token = site.api.service_account(site.namespace, "editor", _EDITS)
    path = f"/apis/anabranch.dev/v1alpha1/namespaces/{site.namespace}/forks/guarded"
    wish = {"spec": {"state": "Promoted"}}
    content = "application/merge-patch+json"
    with pytest.raises(Refused, match=r"takes the verb promote on forks\.anabranch\.dev guarded"):
        site.api.ask("PATCH", path, wish, token=token, content=content)


def test_a_deletion_squashes(site: Site, account: Account, load: Load) -> None:
    appended(site, "orders--guarded", "nothing that counts")
    with account.step("a deletion squashes a fork"):
        site.delete("forks", "guarded")
        site.until_gone("forks", "guarded")
    assert not holds(site, "orders", "nothing that counts")
    done = site.run("anabranch read orders--guarded")
    assert done.code != 0
    load.goes_on()


def test_a_severed_fork_has_a_broker_of_its_own_and_is_protected(
    site: Site, account: Account, root: Path
) -> None:
    with account.step("an exclusive fork, and the broker that is made for it"):
        name = made(site, root, "severed.yaml")
    found = site.get("forks", name)
    others = [each for each in site.all("forks") if each["metadata"]["name"] != name]
    logs = [*site.all("logs"), *others]
    assert found["status"]["broker"] not in {each["status"].get("broker") for each in logs}
    done = site.run(f"anabranch read orders--{name} --format raw")
    parent = site.run("anabranch read orders -n 42 --format raw")
    assert done.said == parent.said
    assert len(done.said.splitlines()) == 42, "up to position 41"
    with pytest.raises(Refused, match="this fork is protected"):
        site.delete("forks", name)
    site.patch("forks", name, protected=False)
    site.delete("forks", name)
    site.until_gone("forks", name)


def test_the_broker_that_is_not_needed_any_more_goes(
    site: Site, account: Account, load: Load
) -> None:
    with account.step("kubectl scale of the pool to two brokers"):
        site.kubectl("scale", f"brokerpool/{RELEASE}", "--replicas=2")
        site.until_green()
    assert len(site.parts("broker")) == 2
    load.goes_on()


def _fork(name: str, **spec: object) -> Document:
    return {
        "apiVersion": "anabranch.dev/v1alpha1",
        "kind": "Fork",
        "metadata": {"name": name},
        "spec": {"parent": {"name": "orders"}, **spec},
    }
