"""What the chart has for jobs of Spark, and that the examples find it there."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from tests.charts.helm import RELEASE, Document, Helm, Refused, values_of

from anabranch_operator.api import names
from anabranch_operator.plan.log.job_templates import GateSettings, objections, restrict

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "kubernetes").glob("spark-*.yaml"))
GATE = next(path for path in EXAMPLES if path.stem == "spark-gate")
NAMESPACE = "default"
DRIVER, EXECUTOR = f"{RELEASE}-spark", f"{RELEASE}-spark-executor"
TOKEN = ("--set", "auth.mode=token", "--set", "auth.existingSecret=tokens")
EVERYWHERE = ("--set", "operator.watch=cluster", "--set", "gates.namespaces={shop}")


def rendered(helm: Helm, *more: str) -> list[Document]:
    return helm.template(*values_of("spark"), *more, namespace=NAMESPACE)


def of_kind(found: list[Document], kind: str) -> dict[str, Document]:
    return {each["metadata"]["name"]: each for each in found if each["kind"] == kind}


def told(found: list[Document]) -> dict[str, str]:
    """The files that are mounted at /etc/spark."""
    return of_kind(found, "ConfigMap")[DRIVER]["data"]


def settings(found: list[Document]) -> dict[str, str]:
    lines = told(found)["spark-defaults.conf"].splitlines()
    return dict(line.split(" ", 1) for line in lines)


def executor(found: list[Document]) -> Document:
    return yaml.safe_load(told(found)["executor.yaml"])


def gates(found: list[Document]) -> GateSettings:
    """As the operator reads them."""
    text = of_kind(found, "ConfigMap")[f"{RELEASE}-operator"]["data"]["operator.toml"]
    return msgspec.convert(tomllib.loads(text)["gates"], GateSettings)


def test_without_being_asked_for_nothing_of_spark_is_there(helm: Helm) -> None:
    found = helm.template(*values_of("kind"), namespace=NAMESPACE)
    assert not [each for each in found if "spark" in each["metadata"]["name"]]
    assert gates(found).api_accounts == ()
    assert gates(found).service_accounts == ()


def test_a_driver_may_make_pods_and_an_executor_only_read_logs(helm: Helm) -> None:
    found = rendered(helm)
    rules = dict[str, list[Document]]()
    roles = of_kind(found, "Role")
    for binding in of_kind(found, "RoleBinding").values():
        for subject in binding["subjects"]:
            if subject["name"].startswith(DRIVER):
                rules.setdefault(subject["name"], []).extend(
                    roles[binding["roleRef"]["name"]]["rules"]
                )
    reads = {"apiGroups": [names.GROUP], "resources": ["logs", "forks"], "verbs": ["read"]}
    assert rules[EXECUTOR] == [reads]
    pods = ["get", "list", "watch", "create", "delete", "deletecollection"]
    assert rules[DRIVER] == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": pods},
        {
            "apiGroups": [""],
            "resources": ["persistentvolumeclaims"],
            "verbs": ["deletecollection"],
        },
        reads,
    ]
    accounts = of_kind(found, "ServiceAccount")
    assert not any(accounts[each]["automountServiceAccountToken"] for each in (DRIVER, EXECUTOR))


def test_jobs_that_write_get_the_verbs_that_are_named(helm: Helm) -> None:
    found = rendered(helm, "--set", "spark.verbs={read,append}")
    (rule,) = of_kind(found, "Role")[DRIVER]["rules"]
    assert rule["verbs"] == ["read", "append"]


def test_executors_are_restricted_and_show_a_token_of_their_own(helm: Helm) -> None:
    found = rendered(helm)
    pod = executor(found)["spec"]
    assert pod["automountServiceAccountToken"] is False
    # A gate's pods are held to the same: nothing is added.
    account = {**pod, "serviceAccountName": EXECUTOR}
    kept = restrict(account, GateSettings(), RELEASE)
    assert kept == account
    (container,) = pod["containers"]
    assert (
        container["name"] == settings(found)["spark.kubernetes.executor.podTemplateContainerName"]
    )
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    mounts = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    volumes = {each["name"]: each for each in pod["volumes"]}
    (service,) = (name for name, path in mounts.items() if path == names.RUN_DIR)
    files = dict[str, str]()
    for source in volumes[service]["projected"]["sources"]:
        if "serviceAccountToken" in source:
            token = source["serviceAccountToken"]
            files[token["path"]] = token["audience"]
        else:
            files[source["configMap"]["items"][0]["path"]] = source["configMap"]["name"]
    assert files == {"token": names.AUDIENCE, "ca.crt": f"{RELEASE}-ca"}


def test_executors_run_what_drivers_run_as_an_account_of_their_own(helm: Helm) -> None:
    found = settings(rendered(helm))
    assert found["spark.kubernetes.authenticate.executor.serviceAccountName"] == EXECUTOR
    assert found["spark.kubernetes.executor.disableConfigMap"] == "true"
    assert found["spark.master"].startswith("k8s://https://")
    images = {container["image"] for _, container in containers()}
    assert images == {found["spark.kubernetes.container.image"]}
    assert found["spark.executor.memoryOverhead"]
    assert found["spark.python.authenticate.socketTimeout"] == "60s"


def test_a_setting_of_ones_own_wins(helm: Helm) -> None:
    own = ("--set-json", 'spark.settings={"spark.executor.memory": "2g", "spark.ui.port": "0"}')
    found = settings(rendered(helm, *own))
    assert (found["spark.executor.memory"], found["spark.ui.port"]) == ("2g", "0")
    assert found["spark.executor.cores"] == "1"


@pytest.mark.parametrize(
    "odd",
    [
        {"spark.ui.port": "0\nkind: Secret"},
        {"spark.ui.port": "0\n---\napiVersion: v1\nkind: Pod"},
        {"spark.ui.port": "0\r"},
        {"spark.ui.port\nkind": "0"},
        {"spark.ui.port 1": "0"},
        {"http.proxy": "x"},
    ],
)
def test_a_setting_is_a_line_and_writes_nothing_else(helm: Helm, odd: dict[str, str]) -> None:
    """It stands in a file of the ConfigMap as it is."""
    with pytest.raises(Refused, match="spark"):
        rendered(helm, "--set-json", f"spark.settings={json.dumps(odd)}")


def test_only_the_trials_store_is_known_by_the_releases_authority(helm: Helm) -> None:
    store = ("--set", "dev.enabled=false", "--set", "s3.bucket=b", "--set", "etcd.endpoints={e:1}")
    for more, variables in (((), ["SSL_CERT_FILE"]), (store, [])):
        (container,) = executor(rendered(helm, *more))["spec"]["containers"]
        assert [each["name"] for each in container.get("env", [])] == variables


def test_one_token_for_all_comes_from_its_secret_which_the_policy_knows(helm: Helm) -> None:
    found = rendered(helm, *TOKEN)
    volumes = executor(found)["spec"]["volumes"]
    secrets = [
        source["secret"]["name"]
        for volume in volumes
        for source in volume.get("projected", {}).get("sources", [])
        if "secret" in source
    ]
    assert secrets == ["tokens"]
    policy = of_kind(found, "ValidatingAdmissionPolicy")[f"{NAMESPACE}-{RELEASE}-spark-pods"]
    listed = {
        name
        for each in policy["spec"]["validations"]
        for name in re.findall(r" in \[(.*?)\]", each["expression"])
    }
    assert listed == {"'tokens'"}
    assert DRIVER not in of_kind(found, "Role"), "a token for all says no account"


def test_it_runs_where_gates_do(helm: Helm) -> None:
    found = rendered(helm, *EVERYWHERE)
    made = [
        (each["kind"], each["metadata"]["namespace"])
        for each in found
        if each["metadata"]["name"] == DRIVER and each["kind"] in {"ServiceAccount", "ConfigMap"}
    ]
    assert sorted(made) == [
        (kind, namespace)
        for kind in ("ConfigMap", "ServiceAccount")
        for namespace in (NAMESPACE, "shop")
    ]
    bindings = of_kind(found, "ValidatingAdmissionPolicyBinding")
    for name in ("pods", "volumes"):
        where = bindings[f"{NAMESPACE}-{RELEASE}-spark-{name}"]["spec"]["matchResources"]
        (expression,) = where["namespaceSelector"]["matchExpressions"]
        assert expression["values"] == [NAMESPACE, "shop"]


def test_the_operator_takes_the_gate_of_the_example(helm: Helm) -> None:
    (fork,) = (each for each in shown(GATE) if each["kind"] == names.FORK)
    template = fork["spec"]["promotion"]["gate"]["jobTemplate"]
    assert objections(template, gates(rendered(helm)), RELEASE) == ()
    without = gates(helm.template(*values_of("kind"), namespace=NAMESPACE))
    refused = " ".join(objections(template, without, RELEASE))
    assert "demo-spark isn't in gates.service_accounts" in refused
    assert "demo-spark isn't in gates.api_accounts" in refused


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_names_what_is_there(helm: Helm, path: Path) -> None:
    found = rendered(helm)
    beside = [each["metadata"]["name"] for each in shown(path)]
    known = {*of_kind(found, "ConfigMap"), *beside, "kube-root-ca.crt", f"{RELEASE}-ca"}
    for pod, container in containers(path):
        assert pod["serviceAccountName"] == DRIVER
        volumes = {each["name"]: each for each in pod["volumes"]}
        for mount in container["volumeMounts"]:
            assert mount["name"] in volumes
        assert set(config_maps(pod["volumes"])) <= known
        held = container["securityContext"]
        assert held["readOnlyRootFilesystem"] is True
        assert held["capabilities"] == {"drop": ["ALL"]}
        assert "memory" in container["resources"]["limits"]
        mounts = {each["mountPath"] for each in container["volumeMounts"]}
        assert {"/tmp", "/etc/spark"} <= mounts
        # A driver that makes executors is found by them, and owns them.
        variables = {each["name"] for each in container["env"]}
        makes = "/var/run/secrets/kubernetes.io/serviceaccount" in mounts
        assert ("SPARK_DRIVER_BIND_ADDRESS" in variables) is makes
        assert ("SPARK_DRIVER_POD_NAME" in variables) is makes
        if path != GATE:
            (url,) = (each["value"] for each in container["env"] if each["name"] == "ANABRANCH_URL")
            assert url.startswith(f"anabranchs://{RELEASE}.{NAMESPACE}.svc:7420?")
            assert names.RUN_DIR in mounts


def shown(path: Path) -> list[Document]:
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def containers(*paths: Path) -> Iterator[tuple[Document, Document]]:
    """Each pod of the examples with its container."""
    for path in paths or EXAMPLES:
        for each in shown(path):
            spec: dict[str, Any] = each.get("spec", {})
            if each["kind"] == names.FORK:
                spec = spec["promotion"]["gate"]["jobTemplate"]["spec"]
            if "template" in spec:
                pod = spec["template"]["spec"]
                (container,) = pod["containers"]
                yield pod, container


def config_maps(volumes: list[Document]) -> Iterator[str]:
    for volume in volumes:
        sources = [volume, *volume.get("projected", {}).get("sources", [])]
        yield from (each["configMap"]["name"] for each in sources if "configMap" in each)
