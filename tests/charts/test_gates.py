"""Where the chart lets the operator run the Jobs of gates, and as whom they run."""

import tomllib

import pytest
from tests.charts.helm import Document, Helm, values_of

CLUSTER = ("--set", "operator.watch=cluster")
TEAMS = (*CLUSTER, "--set", "gates.namespaces={shop,stock}")
HOME = "logs"


def bindings(found: list[Document]) -> dict[str, Document]:
    """Of the role that may create Jobs, by namespace."""
    makers = {
        each["metadata"]["name"]
        for each in found
        if each["kind"] in {"Role", "ClusterRole"}
        for rule in each["rules"]
        if "jobs" in rule["resources"] and {"create", "patch"} & {*rule["verbs"]}
    }
    return {
        each["metadata"].get("namespace", HOME): each
        for each in found
        if each["kind"] in {"RoleBinding", "ClusterRoleBinding"}
        if each["roleRef"]["name"] in makers
    }


@pytest.mark.parametrize(
    ("told", "where"),
    [
        ((), [HOME]),
        (("--set", "gates.enabled=false"), []),
        (CLUSTER, []),
        (TEAMS, ["shop", "stock"]),
        ((*TEAMS, "--set", "gates.enabled=false"), []),
    ],
)
def test_the_operator_may_create_jobs_only_where_gates_are_allowed(
    helm: Helm, told: tuple[str, ...], where: list[str]
) -> None:
    found = helm.template(*values_of("kind"), *told, namespace=HOME)
    bound = bindings(found)
    assert sorted(bound) == where
    assert all(each["kind"] == "RoleBinding" for each in bound.values())
    accounts = [
        each
        for each in found
        if (each["kind"], each["metadata"]["name"]) == ("ServiceAccount", "demo-gate")
    ]
    assert sorted(each["metadata"].get("namespace", HOME) for each in accounts) == where
    assert all(each["automountServiceAccountToken"] is False for each in accounts)


def test_the_account_of_gates_may_read_forks_and_nothing_else(helm: Helm) -> None:
    found = helm.template(*values_of("kind"), namespace=HOME)
    roles = [
        each["roleRef"]["name"]
        for each in found
        if each["kind"] in {"RoleBinding", "ClusterRoleBinding"}
        if "demo-gate" in [subject["name"] for subject in each["subjects"]]
    ]
    assert roles == ["demo-gate"]
    role = next(
        each for each in found if (each["kind"], each["metadata"]["name"]) == ("Role", "demo-gate")
    )
    only = {"apiGroups": ["anabranch.dev"], "resources": ["forks"], "verbs": ["read"]}
    assert role["rules"] == [only]


def test_logs_of_pods_are_read_only_where_that_is_asked_for(helm: Helm) -> None:
    for logs in (False, True):
        told = ("--set", f"gates.logs={str(logs).lower()}")
        found = helm.template(*values_of("kind"), *told, namespace=HOME)
        resources = {
            resource
            for each in found
            if each["kind"] in {"Role", "ClusterRole"}
            for rule in each["rules"]
            for resource in rule["resources"]
        }
        assert ("pods/log" in resources) is logs


def test_the_admission_policy_and_the_operator_mean_the_same_account(helm: Helm) -> None:
    for told, account in (((), "demo-gate"), (("--set", "gates.serviceAccount=own"), "own")):
        found = helm.template(*values_of("kind"), *told, namespace=HOME)
        policy = next(
            each
            for each in found
            if each["kind"] == "ValidatingAdmissionPolicy"
            and each["metadata"]["name"].endswith("-gates")
        )
        (variable,) = policy["spec"]["variables"]
        assert variable["expression"].endswith(f": '{account}'")
        settings = next(
            each["data"]["operator.toml"]
            for each in found
            if each["kind"] == "ConfigMap" and "operator.toml" in each.get("data", {})
        )
        assert tomllib.loads(settings)["gates"]["service_account"] == account
