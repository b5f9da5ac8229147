"""What is shown to people is taken by a real API server, as it stands."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.kubernetes.api_server import ApiServer
from tests.kubernetes.binaries import program
from tests.kubernetes.fixtures import needs

from anabranch_operator.api import names
from anabranch_operator.api.generate.crd import KINDS, crd

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples" / "kubernetes").glob("*.yaml"))
CHART = ROOT / "charts" / "anabranch-crds"


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_taken(resources: ApiServer, namespace: str, path: Path) -> None:
    shown = documents(path)
    # A pod is refused whose account isn't there, and in a dry run none is made.
    resources.service_account(namespace, "client")
    strict = ("--server-side", "--dry-run=server", "--validate=strict")
    said = resources.kubectl("-n", namespace, "apply", *strict, "-f", str(path))
    assert len(said.splitlines()) == len(shown) > 0


def test_there_is_an_example_of_every_kind() -> None:
    kinds = {each["kind"] for path in EXAMPLES for each in documents(path)}
    assert kinds >= names.PLURALS.keys()


def test_the_chart_of_the_crds_brings_them_to_stay(resources: ApiServer) -> None:
    needs("helm")
    values = ["--set", "annotations.team=logs", "--set", "labels.team=logs"]
    command = [program("helm"), "template", "any", str(CHART), *values]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    made = {each["metadata"]["name"]: each for each in yaml.safe_load_all(text)}
    assert len(made) == len(KINDS)
    for kind in KINDS:
        found, wanted = made[kind.full_name], crd(kind)
        wanted["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep", "team": "logs"}
        wanted["metadata"]["labels"]["team"] = "logs"
        assert found == wanted
    forced = ("--server-side", "--force-conflicts")
    resources.kubectl("apply", *forced, "--dry-run=server", "-f", "-", given=text)


@pytest.mark.parametrize("wrong", ["annotations.team=1", "label.team=logs"])
def test_a_value_that_the_chart_does_not_know_is_refused(wrong: str) -> None:
    needs("helm")
    command = [program("helm"), "lint", "--strict", str(CHART), "--set", wrong]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode
    assert "don't meet the specifications of the schema" in done.stdout + done.stderr
