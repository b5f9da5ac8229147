"""An Erwin log beside the release: appended to by its name, while sequencers and shards are rolled,
killed, added and closed; what was acknowledged is read, once and in order.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.cluster.account import Account
from tests.cluster.log_pods import WITHIN_S, LogPods
from tests.cluster.site import RELEASE, Document, Site, kill, until

from anabranch_operator.api import names

LOG = "audit"
"""As the example has it; its SequencerSet and its ShardGroup are called so too."""
EXAMPLE = Path("examples") / "kubernetes" / "erwin.yaml"
_LITTLE: Document = {"requests": {"cpu": "20m", "memory": "64Mi"}}


class Audit(LogPods):
    """The log, and a pod from which a person appends to it and reads it."""

    def __init__(self, site: Site) -> None:
        super().__init__(site, LOG)
        self.records: list[str] = []
        pod = site.program("auditor", ["sleep", "infinity"], RELEASE, "default")
        site.apply(pod)
        until(lambda: site.get("pods", "auditor")["status"]["phase"] == "Running", "it runs")

    def append(self) -> None:
        """The command waits for the position."""
        record = f"entry-{len(self.records)}-{time.time_ns()}"
        self.ask("append", LOG, record)
        self.records.append(record)

    def ask(self, *command: str) -> str:
        return self._site.kubectl("exec", "auditor", "--", "anabranch", *command)


@pytest.fixture(scope="module")
def audit(site: Site, account: Account, root: Path) -> Iterator[Audit]:
    """Clients show its pods what they show the log service. One node has no cores to spare."""
    chart = str(root / "charts" / "anabranch")
    asking = ("--reuse-values", "--set", "belfast.auth=kubernetes", "--wait")
    site.helm("upgrade", RELEASE, chart, *asking)
    site.until_green()
    (log,) = yaml.safe_load_all((root / EXAMPLE).read_text(encoding="utf-8"))
    log["spec"]["deletionPolicy"] = "Delete"
    for part in ("sequencers", "shards"):
        template = log["spec"][part]["template"]
        storage = {"volumeClaim": {"size": "1Gi"}, "onDelete": "Delete"}
        template |= {"resources": _LITTLE, "storage": storage}
    with account.step("a Log of engine erwin is applied, until it is ready"):
        site.apply(log)
        site.until_is("logs", LOG, "Ready")
    site.apply(*_rights())
    made = Audit(site)
    made.until_whole()
    yield made
    site.delete("pods", "auditor")


def _rights() -> Iterator[Document]:
    """Of the account that the person's pod has a token of."""
    group = "rbac.authorization.k8s.io"
    verbs = ["get", "append", "read", "trim"]
    rule = {"apiGroups": [names.GROUP], "resources": ["logs"], "verbs": verbs}
    of: Document = {"apiVersion": f"{group}/v1", "metadata": {"name": "auditor"}}
    yield {**of, "kind": "Role", "rules": [rule]}
    role = {"apiGroup": group, "kind": "Role", "name": "auditor"}
    subject = {"kind": "ServiceAccount", "name": "default"}
    yield {**of, "kind": "RoleBinding", "roleRef": role, "subjects": [subject]}


def test_it_is_opened_by_its_name_and_shown(site: Site, audit: Audit) -> None:
    audit.append()
    until(lambda: audit.members.get("confirmed", 0) >= 1, "the record is stable")
    (found,) = site.kubectl("get", "seq", LOG, "--no-headers").splitlines()
    name, leader, view, members, stable, _backlog, ready, _age = found.split()
    assert (name, members, ready) == (LOG, "3", "True")
    assert leader.startswith(f"{LOG}-sequencer-")
    assert int(view) >= 1
    assert int(stable) >= 1


def test_sequencers_are_rolled_by_view_changes(site: Site, account: Account, audit: Audit) -> None:
    view, before = audit.members["view"], audit.uids(names.SEQUENCER)
    template = {"template": {"podAnnotations": {"rolled": "once"}}}
    with account.step("roll-out of three sequencers of an Erwin log"):
        site.patch("logs", LOG, sequencers=template)
        until(lambda: audit.members.get("observedGeneration") == 2, "the operator has seen it")
        audit.until_whole()
    assert not before & audit.uids(names.SEQUENCER)
    assert audit.members["view"] > view
    audit.append()


def test_a_leader_that_is_killed_is_succeeded(site: Site, account: Account, audit: Audit) -> None:
    members = audit.members
    with account.step("kill -9 of the leader of an Erwin log, until an append has its position"):
        kill(site.get("pods", members["leader"]))
        audit.append()
    audit.until_whole()


def test_a_primary_that_is_killed_is_succeeded(site: Site, account: Account, audit: Audit) -> None:
    (seat, *_) = audit.group["seats"]
    with account.step("kill -9 of a shard's primary of an Erwin log, until an append is stable"):
        kill(site.get("pods", seat["primary"]))
        audit.append()
    audit.until_whole()


def test_shards_are_added_and_closed_while_somebody_appends(
    site: Site, account: Account, audit: Audit
) -> None:
    with account.step("a third shard of an Erwin log, until it takes appends"):
        site.patch("logs", LOG, shards={"count": 3})
        until(lambda: audit.group.get("seated") == 3, "it takes appends")
        audit.append()
    audit.until_whole()
    site.patch("logs", LOG, shards={"count": 2})
    until(lambda: audit.group["seats"][2]["standing"] == "Leaving", "it is closed")
    audit.append()


def test_what_was_acknowledged_is_read_once_and_in_order(audit: Audit) -> None:
    read = [line for line in audit.ask("read", LOG).splitlines() if "entry-" in line]
    assert len(read) == len(audit.records)
    assert all(record in line for record, line in zip(audit.records, read, strict=True))


def test_a_closed_shard_goes_when_it_is_trimmed_and_all_with_the_log(
    site: Site, account: Account, audit: Audit
) -> None:
    end = audit.members["confirmed"]
    audit.ask("trim", LOG, "--before", str(end))
    until(lambda: len(audit.group["seats"]) == 2, "the closed shard is gone", WITHIN_S)
    with account.step("deletion of a Log of engine erwin, until its pods are gone"):
        site.delete("logs", LOG)
        until(
            lambda: not audit.uids(names.SEQUENCER) and not audit.uids(names.SHARD),
            "its pods are gone",
            WITHIN_S,
        )
