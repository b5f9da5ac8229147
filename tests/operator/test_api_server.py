"""The API server that other tests stand on is a real one, and hears and tells what they need."""

import json
from typing import Any

import pytest
from tests.kubernetes.api_server import ApiServer, Refused, Rule
from tests.kubernetes.control_plane import ControlPlane
from tests.operator.installed import until_established

RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
GROUP = "tests.anabranch.dev"


def crd() -> dict[str, Any]:
    rule = {"rule": "self.size == oldSelf.size", "message": "size can't change: make another"}
    spec = {
        "type": "object",
        "properties": {"size": {"type": "integer"}, "note": {"type": "string"}},
        "required": ["size"],
        "x-kubernetes-validations": [rule],
    }
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": "boxes", "singular": "box", "kind": "Box"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"boxes.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def box(name: str, size: int) -> str:
    told = {"apiVersion": f"{GROUP}/v1", "kind": "Box", "metadata": {"name": name}}
    return json.dumps({**told, "spec": {"size": size}})


def pod(name: str) -> dict[str, Any]:
    container = {"name": "main", "image": "none"}
    spec = {"containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def test_it_serves_and_kubectl_speaks_its_version(api_server: ApiServer) -> None:
    assert api_server.kubectl("get", "--raw", "/readyz") == "ok"
    versions = json.loads(api_server.kubectl("version", "--output=json"))
    assert versions["serverVersion"]["gitVersion"].startswith("v1.34.")


def test_rules_of_a_definition_are_enforced(api_server: ApiServer, namespace: str) -> None:
    api_server.kubectl("apply", "--server-side", "-f", "-", given=json.dumps(crd()))
    until_established(api_server, f"boxes.{GROUP}")
    told = ("-n", namespace, "apply", "--server-side", "-f", "-")
    api_server.kubectl(*told, given=box("first", 1))
    with pytest.raises(Refused, match="size can't change: make another"):
        api_server.kubectl(*told, given=box("first", 2))


def test_who_applied_a_field_owns_it(api_server: ApiServer, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps/owned"

    def told(value: str) -> dict[str, object]:
        meta = {"name": "owned"}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"k": value}}

    api_server.apply(path, told("ours"), "first")
    with pytest.raises(Refused, match='conflict with "first"') as refused:
        api_server.apply(path, told("theirs"), "second")
    assert refused.value.code == 409
    assert api_server.apply(path, told("theirs"), "second", force=True)["data"] == {"k": "theirs"}


def test_pod_security_is_enforced(api_server: ApiServer) -> None:
    strict, lax = api_server.namespace(labels=RESTRICTED), api_server.namespace()
    api_server.ask("POST", f"/api/v1/namespaces/{lax}/pods", pod("careless"))
    with pytest.raises(Refused, match='violates PodSecurity "restricted'):
        api_server.ask("POST", f"/api/v1/namespaces/{strict}/pods", pod("careless"))


def test_tokens_are_reviewed_for_their_audience(api_server: ApiServer, namespace: str) -> None:
    token = api_server.service_account(namespace, "client", audiences=["anabranch"])

    def review(audience: str) -> dict[str, Any]:
        spec = {"token": token, "audiences": [audience]}
        told = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
        path = "/apis/authentication.k8s.io/v1/tokenreviews"
        return api_server.ask("POST", path, told)["status"]

    accepted = review("anabranch")
    assert accepted["authenticated"]
    assert accepted["user"]["username"] == f"system:serviceaccount:{namespace}:client"
    assert "authenticated" not in review("somebody-else")


def test_virtual_verbs_are_granted_like_others(api_server: ApiServer, namespace: str) -> None:
    append = Rule(["append"], ["anabranch.dev"], ["forks"], ["orders"])
    api_server.service_account(namespace, "agent", [append])

    def may(verb: str, name: str) -> bool:
        about = {"group": "anabranch.dev", "resource": "forks", "namespace": namespace}
        user = f"system:serviceaccount:{namespace}:agent"
        spec = {"user": user, "resourceAttributes": {**about, "verb": verb, "name": name}}
        told = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": spec,
        }
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        return api_server.ask("POST", path, told)["status"]["allowed"]

    assert may("append", "orders")
    assert not may("append", "invoices")
    assert not may("promote", "orders")


def test_a_token_may_what_its_rules_say(api_server: ApiServer, namespace: str) -> None:
    reads = Rule(["get", "list"], [""], ["configmaps"])
    token = api_server.service_account(namespace, "reader", [reads])
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    assert api_server.ask("GET", path, token=token)["items"] == []
    config = api_server.config_of(token)
    with pytest.raises(Refused, match="cannot list resource"):
        api_server.kubectl("-n", namespace, "get", "pods", kubeconfig=config)


def test_requests_are_counted_by_who_sent_them(api_server: ApiServer, namespace: str) -> None:
    rule = Rule(["get", "list", "create"], [""], ["configmaps"])
    token = api_server.service_account(namespace, "counted", [rule])
    user = f"system:serviceaccount:{namespace}:counted"
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    before = api_server.mark()
    api_server.ask("GET", path, token=token)
    between = api_server.mark()
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}
    api_server.ask("POST", path, made, token=token)
    with pytest.raises(Refused, match="already exists"):
        api_server.ask("POST", path, made, token=token)
    every = api_server.requests(before, user)
    assert [(each.verb, each.resource, each.code) for each in every] == [
        ("list", "configmaps", 200),
        ("create", "configmaps", 201),
        ("create", "configmaps", 409),
    ]
    assert api_server.requests(between, user) == every[1:]
    assert [each.writes for each in every] == [False, True, True]


def test_what_is_written_of_ours_is_overheard(api_server: ApiServer, namespace: str) -> None:
    before = api_server.mark()
    told = {
        "metadata": {"name": "told"},
        "involvedObject": {"kind": "Namespace", "name": namespace, "namespace": namespace},
        "reason": "Overheard",
    }
    api_server.ask("POST", f"/api/v1/namespaces/{namespace}/events", told)
    written = [each for each in api_server.requests(before) if each.namespace == namespace]
    assert [each.sent["reason"] for each in written] == ["Overheard"]


def test_one_of_a_tests_own_is_paused_and_ended(own_api_server: ControlPlane) -> None:
    server = own_api_server.servers["kube-apiserver"]
    server.pause()
    server.resume()
    namespace = own_api_server.api.namespace()
    server.kill()
    server.start()
    path = f"/api/v1/namespaces/{namespace}"
    assert own_api_server.api.ask("GET", path)["metadata"]["name"] == namespace


@pytest.mark.nightly
def test_with_controllers_deployments_run_and_children_go(control_plane: ApiServer) -> None:
    namespace = control_plane.namespace(labels=RESTRICTED)
    told = ("-n", namespace)
    safe = {
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container = {"name": "main", "image": "none", "securityContext": safe}
    labels = {"app": "two"}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "two"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
    control_plane.kubectl(*told, "apply", "-f", "-", given=json.dumps(deployment))
    control_plane.kubectl(*told, "rollout", "status", "deployment/two", "--timeout=120s")
    control_plane.kubectl(*told, "delete", "deployment/two", "--cascade=foreground")
    assert control_plane.kubectl(*told, "get", "pods", "-o", "name") == ""
    control_plane.kubectl("delete", "namespace", namespace, "--timeout=120s")
