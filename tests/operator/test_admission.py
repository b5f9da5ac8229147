"""The admission policies on a real API server: who may delete what is protected, and promote."""

import json
from typing import Any

import pytest
from tests.kubernetes.api_server import ApiServer, Refused, Rule
from tests.operator.installed import until

from anabranch_operator.api import names
from anabranch_operator.api.admission import policies

Document = dict[str, Any]
MERGE = "application/merge-patch+json"
CONTAINER = {"name": "check", "image": "check"}
GATE = {"jobTemplate": {"spec": {"template": {"spec": {"containers": [CONTAINER]}}}}}
EDITS = Rule(["get", "create", "patch", "delete"], [names.GROUP], ["forks", "forks/status"])
JOBS = Rule(["create"], ["batch"], ["jobs"])
ACTS = Rule(["impersonate"], [""], ["serviceaccounts"], ["gate", "checks"])
PROMOTES = Rule(["promote"], [names.GROUP], ["forks"], ["theirs", "new"])


def approval(**pod: Any) -> Document:
    """A promotion that a person approves after a Job whose pods have this in their spec."""
    spec = {"containers": [CONTAINER], **pod}
    gate = {"jobTemplate": {"spec": {"template": {"spec": spec}}}}
    return {"policy": "Approval", "gate": gate}


OPERATOR = "system:serviceaccount:demo:demo-operator"

STOLEN = approval(
    serviceAccountName="demo-operator",
    volumes=[
        {"name": "s3", "secret": {"secretName": "demo-s3"}},
        {"name": "ca", "secret": {"secretName": "demo-ca"}},
    ],
)
"""A Job that fails and prints what is mounted into it."""


class House:
    """A namespace under the policies, and three accounts in it."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.namespace = server.namespace("admission")
        self.attacker = server.service_account(self.namespace, "attacker", [EDITS])
        self.editor = server.service_account(self.namespace, "editor", [EDITS, JOBS, ACTS])
        self.promoter = server.service_account(self.namespace, "promoter", [EDITS, PROMOTES])
        selector = {"matchLabels": {"kubernetes.io/metadata.name": self.namespace}}
        for policy in policies("gate", OPERATOR):
            for each in policy.written(self.namespace, selector):
                server.kubectl("apply", "--server-side", "-f", "-", given=json.dumps(each))
        self.until_in_force()

    def until_in_force(self) -> None:
        """Policies and roles, each a moment after it was written."""
        self.make("first", protected=True, promotable=True)
        promoted: Document = {"spec": {"state": "Promoted"}}

        def in_force() -> bool | None:
            kept = self.refusal("DELETE", "first?dryRun=All")
            unasked = self.refusal("PATCH", "first?dryRun=All", promoted)
            return ("is protected" in kept and "may not decide" in unasked) or None

        gated: Document = {"promotable": True, "promotion": approval()}

        def gates_in_force() -> bool | None:
            return "may not run" in self.not_made(self.attacker, **gated) or None

        def promoter_may() -> bool | None:
            wished = {"promotable": True, **promoted["spec"]}
            return True if not self.not_made(self.promoter, **wished) else None

        def editor_may() -> bool | None:
            return True if not self.not_made(self.editor, **gated) else None

        until(in_force, "the policies are in force")
        until(gates_in_force, "the policy of gates is in force")
        until(editor_may, "who may create Jobs may write gates")
        until(promoter_may, "who may promote may do so")

    def make(
        self, name: str, token: str | None = None, *, dry: bool = False, **spec: Any
    ) -> Document:
        meta = {"apiVersion": names.API_VERSION, "kind": names.FORK, "metadata": {"name": name}}
        body = {**meta, "spec": {"parent": {"name": "orders"}, **spec}}
        return self.ask("POST", "?dryRun=All" if dry else "", body, token=token)

    def patch(self, name: str, change: Document, token: str | None = None) -> Document:
        return self.ask("PATCH", name, change, token=token)

    def delete(self, name: str) -> Document:
        return self.ask("DELETE", name, token=self.editor)

    def ask(
        self, method: str, name: str, body: Document | None = None, *, token: str | None = None
    ) -> Document:
        where = f"/apis/{names.API_VERSION}/namespaces/{self.namespace}/forks"
        content = MERGE if method == "PATCH" else "application/json"
        path = where + name if method == "POST" else f"{where}/{name}"
        return self.server.ask(method, path, body, token=token, content=content)

    def not_made(self, token: str, **spec: Any) -> str:
        """Why a fork isn't made."""
        try:
            self.make("new", token, dry=True, **spec)
        except Refused as refused:
            return str(refused)
        return ""

    def refusal(self, method: str, name: str, body: Document | None = None) -> str:
        try:
            self.ask(method, name, body, token=self.editor)
        except Refused as refused:
            return str(refused)
        return ""


@pytest.fixture(scope="module")
def house(resources: ApiServer) -> House:
    return House(resources)


def test_a_protected_fork_is_not_deleted_and_it_is_told_how(house: House) -> None:
    house.make("kept", protected=True)
    with pytest.raises(Refused) as refused:
        house.delete("kept")
    assert refused.value.code == 403
    way = (
        f"kubectl -n {house.namespace} patch fork kept --type=merge "
        """-p '{"spec":{"protected":false}}', and delete it again"""
    )
    assert way in str(refused.value)
    command = way.removesuffix(", and delete it again").replace("'", "").split()
    house.server.kubectl(*command[1:])
    house.delete("kept")


def test_a_fork_without_protection_is_deleted(house: House) -> None:
    house.make("loose")
    assert house.delete("loose")["status"] == "Success"


@pytest.mark.parametrize("phase", ["Promoted", "Squashed", "Expired"])
def test_nothing_is_left_to_protect_of_a_fork_that_is_no_more(house: House, phase: str) -> None:
    name = f"was-{phase.lower()}"
    house.make(name, protected=True)
    house.patch(f"{name}/status", {"status": {"phase": phase}})
    house.delete(name)


def test_a_namespace_that_is_deleted_takes_protected_forks_along(resources: ApiServer) -> None:
    house = House(resources)
    resources.ask("DELETE", f"/api/v1/namespaces/{house.namespace}")

    def gone() -> bool | None:
        return True if not house.refusal("DELETE", "first") else None

    until(gone, "the API server has seen that the namespace goes")
    assert "not found" in house.refusal("GET", "first")


GROUPS: dict[str, Document] = {
    names.SEQUENCERS: {},
    names.SHARDS: {"sequencers": "orders"},
}


@pytest.mark.parametrize("kind", GROUPS)
def test_what_has_seats_is_not_deleted_and_it_is_told_how(house: House, kind: str) -> None:
    plural = names.PLURALS[kind]
    where = f"/apis/{names.API_VERSION}/namespaces/{house.namespace}/{plural}"
    meta = {"apiVersion": names.API_VERSION, "kind": kind, "metadata": {"name": "orders"}}
    spec = {"image": "anabranch", "storage": {"volumeClaim": {"size": "1Gi"}}, **GROUPS[kind]}
    server = house.server

    def seated(count: int) -> None:
        status = {"status": {"seated": count}}
        server.ask("PATCH", f"{where}/orders/status", status, content=MERGE)

    def kept() -> bool | None:
        try:
            server.ask("DELETE", f"{where}/orders?dryRun=All")
        except Refused:
            return True
        return None

    server.ask("POST", where, {**meta, "spec": spec})
    seated(2)
    until(kept, f"the policy of {plural} is in force")
    with pytest.raises(Refused) as refused:
        server.ask("DELETE", f"{where}/orders")
    assert refused.value.code == 403
    assert "2 shards have seats: scale the ShardGroups to 0 first" in str(refused.value)
    way = f"kubectl -n {house.namespace} annotate {plural} orders {names.FORGET}=true"
    assert way in str(refused.value)
    server.kubectl(*way.split()[1:])
    server.ask("DELETE", f"{where}/orders")
    server.ask("POST", where, {**meta, "spec": spec})
    seated(0)
    server.ask("DELETE", f"{where}/orders")
    server.ask("POST", where, {**meta, "spec": spec})
    seated(2)
    collector = "system:serviceaccount:kube-system:generic-garbage-collector"
    asked = ("-n", house.namespace, "delete", plural, "orders", "--wait=false")
    server.kubectl("--as", collector, *asked)  # its Log was deleted, and all that was in it


def test_what_takes_a_logs_appends_is_deleted_by_the_operator_alone(house: House) -> None:
    where = f"/apis/{names.API_VERSION}/namespaces/{house.namespace}/sequencersets"
    spec = {"engine": "lazy", "image": "anabranch", "storage": {"volumeClaim": {"size": "1Gi"}}}
    meta: Document = {"apiVersion": names.API_VERSION, "kind": names.SEQUENCERS}
    server = house.server

    def make(**labels: str) -> None:
        metadata = {"name": "clicks", "labels": labels}
        server.ask("POST", where, {**meta, "metadata": metadata, "spec": spec})

    def kept() -> bool | None:
        try:
            server.ask("DELETE", f"{where}/clicks?dryRun=All")
        except Refused:
            return True
        return None

    make(**{names.LOG_ID: "7"})
    until(kept, "the policy of lazy fronts is in force")
    with pytest.raises(Refused) as refused:
        server.ask("DELETE", f"{where}/clicks")
    assert refused.value.code == 403
    assert "it takes the appends of log 7: set spec.appends of its Log" in str(refused.value)
    asked = ("-n", house.namespace, "delete", "sequencersets", "clicks", "--wait=false")
    server.kubectl("--as", OPERATOR, "--as-group", "system:masters", *asked)
    make()
    server.ask("DELETE", f"{where}/clicks")  # it has taken nothing yet
    make(**{names.LOG_ID: "7"})
    way = f"kubectl -n {house.namespace} annotate sequencersets clicks {names.FORGET}=true"
    assert way in str(refused.value)
    server.kubectl(*way.split()[1:])
    server.ask("DELETE", f"{where}/clicks")


def test_promoting_takes_the_verb_on_this_very_fork(house: House) -> None:
    house.make("theirs", promotable=True)
    house.make("others", promotable=True)
    promoted = {"spec": {"state": "Promoted"}}
    with pytest.raises(Refused) as refused:
        house.patch("theirs", promoted, house.editor)
    assert refused.value.code == 403
    needs = f"it takes the verb promote on forks.anabranch.dev theirs in {house.namespace}"
    assert f"{house.namespace}:editor may not decide on promotions: {needs}" in str(refused.value)
    with pytest.raises(Refused, match=r"forks.anabranch.dev others in"):
        house.patch("others", promoted, house.promoter)
    assert house.patch("theirs", promoted, house.promoter)["spec"]["state"] == "Promoted"


def test_who_may_not_promote_makes_nothing_promoted(house: House) -> None:
    with pytest.raises(Refused, match=r"forks.anabranch.dev new in"):
        house.make("new", house.editor, promotable=True, state="Promoted")
    house.make("new", house.promoter, promotable=True, state="Promoted")


def test_approving_takes_the_verb_too_and_wishing_doesnt(house: House) -> None:
    house.make("proposal", house.editor, promotable=True, promotion={"policy": "Approval"})
    house.patch("proposal", {"spec": {"state": "Promoted"}}, house.editor)
    with pytest.raises(Refused, match="may not decide on promotions"):
        house.patch("proposal", {"spec": {"promotion": {"policy": "Manual"}}}, house.editor)
    with pytest.raises(Refused, match="may not decide on promotions"):
        house.patch("proposal", {"spec": {"approved": True}}, house.editor)
    assert house.patch("proposal", {"spec": {"approved": True}})["spec"]["approved"]


def test_nobody_lets_a_job_of_his_promote_what_he_may_not(house: House) -> None:
    gated = {"policy": "Gate", "gate": GATE}
    with pytest.raises(Refused, match="may not decide on promotions"):
        house.make("gated", house.editor, promotable=True, promotion=gated)
    house.make("gated", promotable=True, promotion=gated)
    easier = {"spec": {"promotion": {"gate": {"onFailure": "Hold"}}}}
    with pytest.raises(Refused, match="may not decide on promotions"):
        house.patch("gated", easier, house.editor)
    house.make("asked", house.editor, promotable=True, promotion={"policy": "Approval"})
    with pytest.raises(Refused, match="may not decide on promotions"):
        house.patch("asked", {"spec": {"promotion": gated}}, house.editor)


def test_who_may_only_write_forks_starts_no_pod(house: House) -> None:
    """The attack: a Job that runs as the operator, and prints the Secrets that it mounts."""
    attack = {"promotable": True, "state": "Promoted", "promotion": STOLEN}
    with pytest.raises(Refused) as refused:
        house.make("attack", house.attacker, **attack)
    assert refused.value.code == 403
    needs = "the verbs create on jobs.batch and impersonate on the service account demo-operator"
    who = f"{house.namespace}:attacker may not run the Job of a gate"
    assert f"{who}: it takes {needs} in {house.namespace}" in str(refused.value)
    for policy in ("Gate", "Approval"):
        for state in ("Active", "Promoted"):
            promotion = {**approval(), "policy": policy}
            spec = {"promotable": True, "state": state, "promotion": promotion}
            assert "may not" in house.not_made(house.attacker, **spec)
    manual = {**approval(), "policy": "Manual"}
    assert "no part in policy Manual" in house.not_made(
        house.attacker, promotable=True, promotion=manual
    )


def test_a_gate_that_is_added_later_takes_the_same_rights(house: House) -> None:
    house.make("harmless", house.attacker, promotable=True)
    for change in ({"promotion": STOLEN}, {"promotion": STOLEN, "state": "Promoted"}):
        with pytest.raises(Refused, match="may not run the Job of a gate"):
            house.patch("harmless", {"spec": change}, house.attacker)


def test_starting_and_changing_somebody_elses_job_takes_the_same_rights(house: House) -> None:
    house.make("idle", promotable=True, promotion=approval())
    template = {"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "b"}]}}}}
    changed = {"promotion": {"gate": {"jobTemplate": template}}}
    for change in ({"state": "Promoted"}, changed, {"promotion": {"gate": {"onFailure": "Hold"}}}):
        with pytest.raises(Refused, match="may not run the Job of a gate"):
            house.patch("idle", {"spec": change}, house.attacker)
    house.patch("idle", {"spec": {"ttl": None}, "metadata": {"labels": {"a": "b"}}}, house.attacker)


def test_who_may_create_jobs_runs_them_as_the_accounts_that_he_may_use(house: House) -> None:
    with pytest.raises(Refused, match="on the service account demo-operator"):
        house.make("greedy", house.editor, promotable=True, promotion=STOLEN)
    allowed = approval(serviceAccountName="checks")
    house.make("modest", house.editor, promotable=True, promotion=allowed)
    house.patch("modest", {"spec": {"promotion": approval()}}, house.editor)
    started = house.patch("modest", {"spec": {"state": "Promoted"}}, house.editor)
    assert started["spec"]["state"] == "Promoted"


def test_a_gate_is_changed_after_an_approval_only_by_who_could_approve(house: House) -> None:
    house.make("trusted", promotable=True, approved=True, promotion=approval())
    easier = {"promotion": {"gate": {"onFailure": "Hold"}}}
    for change in (easier, {"promotion": {"gate": None}}):
        with pytest.raises(Refused, match="may not decide on promotions"):
            house.patch("trusted", {"spec": change}, house.editor)


def test_everything_else_of_a_decided_fork_is_as_before(house: House) -> None:
    """Statuses, finalizers, labels and other fields are no matter of these policies."""
    house.make("decided", promotable=True, state="Promoted", protected=True)
    held = {"metadata": {"finalizers": ["tests.dev/held"], "labels": {"a": "b"}}}
    house.patch("decided", held, house.editor)
    house.patch("decided/status", {"status": {"phase": "Promoting"}}, house.editor)
    house.patch("decided", {"spec": {"ttlAfterFinished": "1h"}}, house.editor)
    house.patch("decided", {"metadata": {"finalizers": []}}, house.editor)


def test_another_namespace_is_left_alone(house: House, resources: ApiServer) -> None:
    elsewhere = resources.namespace("elsewhere")
    where = f"/apis/{names.API_VERSION}/namespaces/{elsewhere}/forks"
    fork = {"apiVersion": names.API_VERSION, "kind": names.FORK, "metadata": {"name": "free"}}
    resources.ask("POST", where, {**fork, "spec": {"parent": {"name": "a"}, "protected": True}})
    resources.ask("DELETE", f"{where}/free")
