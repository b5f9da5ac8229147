"""Pods that the operator makes of a Log, a set or a pool, on a real API server: their authors have
the rights to make them.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.kubernetes.api_server import ApiServer, Refused, Rule
from tests.operator.installed import until

from anabranch_operator.api import names
from anabranch_operator.api.admission import policies

Document = dict[str, Any]
EXAMPLES = Path(__file__).parents[2] / "examples" / "kubernetes"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"

WRITES = ("get", "create", "patch")
LOGS = Rule(WRITES, [names.GROUP], ["logs"])
PARTS = Rule(WRITES, [names.GROUP], ["sequencersets", "shardgroups", "brokerpools"])
PODS = Rule(["create"], [""], ["pods"])
ACTS = Rule(["impersonate"], [""], ["serviceaccounts"], ["demo-belfast", "demo-lazy"])

PLAIN: Document = {"image": "anabranch", "storage": {"volumeClaim": {"size": "1Gi"}}}
STOLEN = {
    **PLAIN,
    "image": "evil.example/steal:1",
    "serviceAccountName": "demo-operator",
    "tlsSecret": "demo-ca",
    "config": {"secrets": ["demo-s3"]},
}
"""Pods that run a foreign image as the operator, with Secrets of the release."""
BOTH = {"sequencers": {"template": STOLEN}, "shards": {"count": 1, "template": STOLEN}}
ATTACKS: dict[str, Document] = {
    "erwin": {"engine": "erwin", **BOTH},
    "belfast": {"engine": "belfast", **BOTH},
    "lazy": {"appends": "Lazy", "sequencers": {"template": STOLEN}},
}
NAMED = {"engine": "erwin", "sequencers": {"name": "parts"}}
SETS: dict[str, Document] = {
    names.SEQUENCERS: PLAIN,
    names.SHARDS: {**PLAIN, "sequencers": "parts"},
    names.POOL: {"image": "anabranch"},
}


class House:
    """A namespace under the policies, and accounts that may do more and more in it."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.namespace = server.namespace("pods")
        self.tenant = self._account("tenant", LOGS)
        """May declare Logs."""
        self.keeper = self._account("keeper", LOGS, PARTS)
        """May declare sets and pools too, and make no pods."""
        self.maker = self._account("maker", LOGS, PARTS, PODS)
        """May make pods, and act as no account."""
        self.deployer = self._account("deployer", LOGS, PARTS, PODS, ACTS)
        self.operator = self._account("demo-operator", LOGS, PARTS)
        selector = {"matchLabels": {"kubernetes.io/metadata.name": self.namespace}}
        for policy in policies("gate", f"system:serviceaccount:{self.namespace}:demo-operator"):
            for each in policy.written(self.namespace, selector):
                server.kubectl("apply", "--server-side", "-f", "-", given=json.dumps(each))
        self._until_in_force()

    def make(self, kind: str, name: str, token: str | None = None, **spec: Any) -> Document:
        meta = {"apiVersion": names.API_VERSION, "kind": kind, "metadata": {"name": name}}
        return self.server.ask("POST", self._path(kind), {**meta, "spec": spec}, token=token)

    def change(self, kind: str, name: str, token: str, **spec: Any) -> Document:
        path = f"{self._path(kind)}/{name}"
        return self.server.ask("PATCH", path, {"spec": spec}, token=token, content=MERGE)

    def label(self, name: str, label: str | None, token: str) -> Document:
        """The log whose lazy appends a SequencerSet takes."""
        body = {"metadata": {"labels": {names.LOG_ID: label}}}
        path = f"{self._path(names.SEQUENCERS)}/{name}"
        return self.server.ask("PATCH", path, body, token=token, content=MERGE)

    def try_out(self, kind: str, token: str, **spec: Any) -> str:
        """Why this isn't made; empty if it would be."""
        # A Log is called like the set that it names.
        name = spec.get("sequencers", {}).get("name", "tried") if kind == names.LOG else "tried"
        meta = {"apiVersion": names.API_VERSION, "kind": kind, "metadata": {"name": name}}
        path = f"{self._path(kind)}?dryRun=All"
        try:
            self.server.ask("POST", path, {**meta, "spec": spec}, token=token)
        except Refused as refused:
            return str(refused)
        return ""

    def needs(self, account: str, right: str) -> str:
        user = f"system:serviceaccount:{self.namespace}:{account}"
        return f"{user} may not declare these pods: it takes the verb {right} in {self.namespace}"

    def apply_as_operator(self, kind: str, name: str, spec: Document, **labels: str) -> Document:
        meta = {"name": name, "labels": labels}
        body = {"apiVersion": names.API_VERSION, "kind": kind, "metadata": meta, "spec": spec}
        path = f"{self._path(kind)}/{name}?fieldManager={names.FIELD_MANAGER}&force=true"
        return self.server.ask("PATCH", path, body, token=self.operator, content=APPLY)

    def _account(self, name: str, *rules: Rule) -> str:
        return self.server.service_account(self.namespace, name, rules)

    def _path(self, kind: str) -> str:
        plural = names.PLURALS[kind]
        return f"/apis/{names.API_VERSION}/namespaces/{self.namespace}/{plural}"

    def _until_in_force(self) -> None:
        """Policies and roles, each a moment after it was written."""
        lazy = {**PLAIN, "serviceAccountName": "demo-lazy"}

        def refused() -> bool | None:
            said = [self.try_out(names.LOG, self.tenant, **each) for each in ATTACKS.values()]
            said.append(self.try_out(names.LOG, self.keeper, **ATTACKS["lazy"]))
            said.append(self.try_out(names.POOL, self.keeper, image="anabranch"))
            shards = {"shards": {"template": PLAIN}, **NAMED}
            said.append(self.try_out(names.LOG, self.tenant, **shards))
            return all("these pods" in each for each in said) or None

        def unlabelled() -> bool | None:
            try:
                self.label("labelled?dryRun=All", "2", self.keeper)
            except Refused as refused:
                return "it is the operator's" in str(refused) or None
            return None

        def allowed() -> bool | None:
            return not self.try_out(names.SEQUENCERS, self.deployer, **lazy) or None

        self.make(names.SEQUENCERS, "labelled", engine="lazy", **PLAIN)
        until(refused, "the policies are in force")
        until(unlabelled, "the policy of labels is in force")
        until(allowed, "the deployer has its rights")


@pytest.fixture(scope="module")
def house(resources: ApiServer) -> House:
    return House(resources)


@pytest.mark.parametrize("attack", ATTACKS)
def test_who_may_only_write_logs_has_no_pods_of_an_image_of_his_own(
    house: House, attack: str
) -> None:
    """As the operator, with the Secrets of the release."""
    with pytest.raises(Refused) as refused:
        house.make(names.LOG, attack, house.tenant, **ATTACKS[attack])
    assert refused.value.code == 403
    rights = ("create on sequencersets.anabranch.dev", "create on shardgroups.anabranch.dev")
    said = str(refused.value)
    assert any(house.needs("tenant", right) in said for right in rights), "either policy may answer"


def test_shards_of_an_image_of_ones_own_take_the_same_rights(house: House) -> None:
    spec = {**NAMED, "shards": {"template": {**STOLEN, "copies": 1}}}
    said = house.try_out(names.LOG, house.tenant, **spec)
    assert house.needs("tenant", "create on shardgroups.anabranch.dev") in said
    box = {"url": "kafka://evil.example:9092/a", "accessSecret": "kafka"}
    spec = {**NAMED, "shards": {"template": {**PLAIN, "copies": 1, "blackBox": box}}}
    said = house.try_out(names.LOG, house.keeper, **spec)
    assert house.needs("keeper", "create on pods") in said


def test_what_makes_no_pods_takes_no_more_than_it_did(house: House) -> None:
    house.make(names.LOG, "plain", house.tenant, retention={"age": "1d"})
    house.make(names.LOG, "parts", house.tenant, **NAMED, shards={"names": ["parts"]})
    house.change(names.LOG, "plain", house.tenant, retention={"age": "2d"})


@pytest.mark.parametrize("kind", SETS)
def test_who_may_make_no_pods_has_none_made_by_a_set_or_pool(house: House, kind: str) -> None:
    said = house.try_out(kind, house.keeper, **SETS[kind])
    assert house.needs("keeper", "create on pods") in said
    assert not house.try_out(kind, house.maker, **SETS[kind]), "it could make them itself"


@pytest.mark.parametrize("kind", SETS)
def test_pods_run_as_accounts_that_their_author_may_act_as(house: House, kind: str) -> None:
    theirs = {**SETS[kind], "serviceAccountName": "demo-operator"}
    said = house.try_out(kind, house.deployer, **theirs)
    right = "impersonate on serviceaccounts demo-operator"
    assert house.needs("deployer", right) in said
    assert "demo-belfast" in house.try_out(
        kind, house.maker, **{**SETS[kind], "serviceAccountName": "demo-belfast"}
    )
    assert not house.try_out(
        kind, house.deployer, **{**SETS[kind], "serviceAccountName": "demo-belfast"}
    )


@pytest.mark.parametrize("path", ["erwin", "erwin-kafka", "lazy", "belfast-log", "belfast"])
def test_who_has_the_rights_declares_the_examples(house: House, path: str) -> None:
    text = (EXAMPLES / f"{path}.yaml").read_text(encoding="utf-8")
    for shown in yaml.safe_load_all(text):
        if shown["kind"] in names.PLURALS:
            assert not house.try_out(shown["kind"], house.deployer, **shown["spec"])
            said = house.try_out(shown["kind"], house.keeper, **shown["spec"])
            assert house.needs("keeper", "create on pods") in said


def test_pods_that_were_declared_before_go_on_until_they_change(house: House) -> None:
    """Their author had the rights, or was there before the policies."""
    template = {**PLAIN, "copies": 1, "serviceAccountName": "demo-operator"}
    parts = {"sequencers": {"template": PLAIN}, "shards": {"count": 1, "template": template}}
    house.make(names.LOG, "grown", engine="erwin", **parts)
    house.change(names.LOG, "grown", house.tenant, shards={"count": 3}, quota={})
    again = {**template, "rollout": {"policy": "Paused"}, "leaving": {"waitFor": "Trimmed"}}
    house.change(names.LOG, "grown", house.tenant, shards={"template": again})
    for change in ({"image": "evil"}, {"tlsSecret": "demo-ca"}, {"podLabels": {"a": "b"}}):
        for part in parts:
            with pytest.raises(Refused, match="may not declare these pods"):
                house.change(names.LOG, "grown", house.tenant, **{part: {"template": change}})
    with pytest.raises(Refused, match="impersonate on serviceaccounts demo-operator"):
        house.change(
            names.LOG, "grown", house.deployer, shards={"template": {"image": "of my own"}}
        )


def test_a_log_that_had_no_sequencers_gets_none_by_a_change(house: House) -> None:
    house.make(names.LOG, "direct", house.tenant)
    with pytest.raises(Refused, match=r"create on sequencersets\.anabranch\.dev"):
        house.change(names.LOG, "direct", house.tenant, **ATTACKS["lazy"])


def test_who_may_scale_goes_on_scaling(house: House) -> None:
    house.make(names.POOL, "scaled", **SETS[names.POOL])
    house.make(names.SHARDS, "scaled", **SETS[names.SHARDS])
    house.change(names.POOL, "scaled", house.keeper, min=3, max=9, replicas=4, spare=2)
    house.change(names.SHARDS, "scaled", house.keeper, shards=4)
    with pytest.raises(Refused, match="create on pods"):
        house.change(names.POOL, "scaled", house.keeper, peerTlsSecret="demo-ca")
    with pytest.raises(Refused, match="create on pods"):
        house.change(names.SHARDS, "scaled", house.keeper, shards=5, config={"secrets": ["a"]})


def test_the_operator_makes_and_changes_what_logs_declare(house: House) -> None:
    """Whoever declared the Log has been asked already."""
    for image in ("first", "second"):
        spec = {**PLAIN, "image": image, "serviceAccountName": "demo-belfast"}
        house.apply_as_operator(names.SEQUENCERS, "made", spec)
        house.apply_as_operator(names.SHARDS, "made", {**spec, "sequencers": "made"})


def test_whose_appends_a_set_takes_is_the_operators_to_say(house: House) -> None:
    spec = {**PLAIN, "engine": "lazy"}
    made = house.apply_as_operator(names.SEQUENCERS, "front", spec)
    assert names.LOG_ID not in made["metadata"].get("labels", {})
    with pytest.raises(Refused, match="it is the operator's to set"):
        house.label("front", "777", house.deployer)
    house.apply_as_operator(names.SEQUENCERS, "front", spec, **{names.LOG_ID: "1"})
    for label in ("777", None):
        with pytest.raises(Refused) as refused:
            house.label("front", label, house.deployer)
        assert refused.value.code == 403
        assert f"the label {names.LOG_ID} of SequencerSet front" in str(refused.value)
    house.change(names.SEQUENCERS, "front", house.deployer, image="newer")
    house.apply_as_operator(names.SEQUENCERS, "front", spec, **{names.LOG_ID: "2"})
