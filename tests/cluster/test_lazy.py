"""A Bolt log with lazy appends beside the release: appended to by its name, while its sequencers
are rolled and killed; made direct again; what was acknowledged is read, once and in order.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.cluster.account import Account
from tests.cluster.log_pods import WITHIN_S
from tests.cluster.site import RELEASE, Document, Site, kill, until
from tests.kubernetes.api_server import Refused

from anabranch_operator.api import names

LOG = "clicks"
"""As the example has it; its SequencerSet is called so too."""
EXAMPLE = Path("examples") / "kubernetes" / "lazy.yaml"
MEMBERS = 3
_LITTLE: Document = {"requests": {"cpu": "20m", "memory": "64Mi"}}


class Clicks:
    """The log, and a pod from which a person appends to it and reads it."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.records: list[str] = []
        site.apply(site.program("clicker", ["sleep", "infinity"], RELEASE, "default"))
        until(lambda: site.get("pods", "clicker")["status"]["phase"] == "Running", "it runs")

    @property
    def members(self) -> Document:
        return self._site.get("sequencersets", LOG).get("status", {})

    @property
    def pods(self) -> dict[str, Document]:
        found = self._site.all("pods", **{names.SEQUENCERS_LABEL: LOG})
        return {each["metadata"]["name"]: each["metadata"] for each in found}

    @property
    def uids(self) -> set[str]:
        return {each["uid"] for each in self.pods.values()}

    def append(self) -> str:
        record = f"click-{len(self.records)}-{time.time_ns()}"
        said = self.ask("append", LOG, record)
        self.records.append(record)
        return said

    def ask(self, *command: str) -> str:
        return self._site.kubectl("exec", "clicker", "--", "anabranch", *command)

    def read(self) -> list[str]:
        return [line for line in self.ask("read", LOG).splitlines() if "click-" in line]

    def until_whole(self) -> None:
        """Every pod is as declared, and every sequencer counts."""

        def look() -> bool:
            wanted = self._site.get("sequencersets", LOG)
            found = wanted.get("status", {})
            current = found.get("observedGeneration") == wanted["metadata"]["generation"]
            told = {found.get(each) for each in ("members", "ready", "updated")}
            return current and told == {MEMBERS}

        until(look, "every sequencer counts", WITHIN_S)


def _there(site: Site, plural: str) -> set[str]:
    return {each["metadata"]["name"] for each in site.all(plural)}


@pytest.fixture(scope="module")
def clicks(site: Site, account: Account, root: Path) -> Iterator[Clicks]:
    """Clients show its pods what they show the log service. One node has no cores to spare."""
    chart = str(root / "charts" / "anabranch")
    asking = ("--reuse-values", "--set", "belfast.auth=kubernetes", "--wait")
    site.helm("upgrade", RELEASE, chart, *asking)
    site.until_green()
    (log,) = yaml.safe_load_all((root / EXAMPLE).read_text(encoding="utf-8"))
    log["spec"]["deletionPolicy"] = "Delete"
    storage = {"volumeClaim": {"size": "1Gi"}, "onDelete": "Delete"}
    log["spec"]["sequencers"]["template"] |= {"resources": _LITTLE, "storage": storage}
    site.apply(*_rights())
    with account.step("a Log with lazy appends is applied, until it is ready"):
        site.apply(log)
        site.until_is("logs", LOG, "Ready")
    made = Clicks(site)
    made.until_whole()
    yield made
    site.delete("pods", "clicker")


def _rights() -> Iterator[Document]:
    """Of the account that the person's pod has a token of."""
    group = "rbac.authorization.k8s.io"
    verbs = ["get", "append", "read", "fork"]
    rule = {"apiGroups": [names.GROUP], "resources": ["logs", "forks"], "verbs": verbs}
    of: Document = {"apiVersion": f"{group}/v1", "metadata": {"name": "clicker"}}
    yield {**of, "kind": "Role", "rules": [rule]}
    role = {"apiGroup": group, "kind": "Role", "name": "clicker"}
    subject = {"kind": "ServiceAccount", "name": "default"}
    yield {**of, "kind": "RoleBinding", "roleRef": role, "subjects": [subject]}


def test_it_is_opened_by_its_name_and_shown(site: Site, clicks: Clicks) -> None:
    clicks.append()
    until(lambda: len(clicks.read()) == 1, "the record is in the log")
    until(lambda: clicks.members.get("confirmed", 0) >= 1, "the set shows it")
    (found,) = site.kubectl("get", "seq", LOG, "--no-headers").splitlines()
    name, leader, view, members, _stable, _backlog, ready, _age = found.split()
    assert (name, members, ready) == (LOG, str(MEMBERS), "True")
    assert leader.startswith(f"{LOG}-sequencer-")
    assert int(view) >= 1
    status = site.get("logs", LOG)["status"]
    assert (status["leader"], status["durability"]) == (leader, "fsync")
    assert "lazy: acknowledged on the disks of 3 sequencers" in clicks.ask("log", "show", LOG)


def test_its_set_isnt_deleted_while_it_takes_appends(site: Site, clicks: Clicks) -> None:
    with pytest.raises(Refused, match="it takes the appends of log"):
        site.delete("sequencersets", LOG)
    assert clicks.members["members"] == MEMBERS


def test_sequencers_are_rolled_by_view_changes(
    site: Site, account: Account, clicks: Clicks
) -> None:
    view, before = clicks.members["view"], clicks.uids
    template = {"template": {"podAnnotations": {"rolled": "once"}}}
    generation = site.get("sequencersets", LOG)["metadata"]["generation"]
    with account.step("roll-out of three sequencers of a lazy front"):
        site.patch("logs", LOG, sequencers=template)
        until(
            lambda: clicks.members.get("observedGeneration", 0) > generation,
            "the operator has seen it",
        )
        clicks.append()
        clicks.until_whole()
    assert not before & clicks.uids
    assert clicks.members["view"] > view
    clicks.append()


def test_a_leader_that_is_killed_is_succeeded(site: Site, account: Account, clicks: Clicks) -> None:
    with account.step("kill -9 of the leader of a lazy front, until an append is acknowledged"):
        kill(site.get("pods", clicks.members["leader"]))
        clicks.append()
    clicks.until_whole()


def test_a_follower_that_is_killed_is_done_without(site: Site, clicks: Clicks) -> None:
    leader = clicks.members["leader"]
    follower = next(each for each in sorted(clicks.pods) if each != leader)
    kill(site.get("pods", follower))
    clicks.append()
    clicks.until_whole()


def test_what_was_acknowledged_is_read_once_and_in_order(clicks: Clicks) -> None:
    until(lambda: len(clicks.read()) >= len(clicks.records), "the log has it")
    read = clicks.read()
    assert len(read) == len(clicks.records)
    assert all(record in line for record, line in zip(clicks.records, read, strict=True))


def test_back_to_direct_appends_the_sequencers_go(
    site: Site, account: Account, clicks: Clicks
) -> None:
    clicks.append()
    with account.step("lazy appends become direct, until the log is ready and the set is gone"):
        site.patch("logs", LOG, appends="Direct", sequencers=None)
        until(lambda: LOG not in _there(site, "sequencersets"), "the set is gone", WITHIN_S)
        until(lambda: not clicks.pods, "its pods are gone", WITHIN_S)
        site.until_is("logs", LOG, "Ready")
    assert "view" not in site.get("logs", LOG)["status"]
    clicks.append()
    until(lambda: len(clicks.read()) == len(clicks.records), "every record is in the log")
    test_what_was_acknowledged_is_read_once_and_in_order(clicks)


def test_a_log_that_is_there_is_made_lazy_and_all_of_it_goes_with_the_log(
    site: Site, account: Account, root: Path, clicks: Clicks
) -> None:
    """In memory, and without volumes."""
    (log,) = yaml.safe_load_all((root / EXAMPLE).read_text(encoding="utf-8"))
    template = log["spec"]["sequencers"]["template"] | {
        "resources": _LITTLE,
        "storage": {"ephemeral": True},
        "durability": "memory",
    }
    name = "carts"
    log["metadata"]["name"] = name
    direct = {"deletionPolicy": "Delete"}
    site.apply({**log, "spec": direct})
    site.until_is("logs", name, "Ready")
    clicks.ask("append", name, "an apple")
    with account.step("a Log's appends become lazy, until one is acknowledged"):
        site.patch("logs", name, appends="Lazy", sequencers={"template": template})
        until(lambda: name in _there(site, "sequencersets"), "the set is there")
        site.until_is("sequencersets", name, "Ready")
        clicks.ask("append", name, "a pear")
    until(lambda: "a pear" in clicks.ask("read", name), "the log has it")
    with account.step("deletion of a Log with lazy appends, until its pods are gone"):
        for each in (name, LOG):
            site.delete("logs", each)
        until(
            lambda: not site.all("pods", **{names.SEQUENCERS_LABEL: name}),
            "its pods are gone",
            WITHIN_S,
        )
    for plural in ("sequencersets", "logs"):
        until(
            lambda plural=plural: not _there(site, plural) & {name, LOG},
            f"no {plural} are left",
            WITHIN_S,
        )
    claims = _there(site, "persistentvolumeclaims")
    assert {each for each in claims if each.startswith(f"data-{LOG}-")} == set()
