"""The operator's settings, by variables, by a file, and what they refuse."""

from pathlib import Path

import pytest

from anabranch.core.errors import BadRequest
from anabranch_operator.plan.certificates.facts import Leaf, Mode
from anabranch_operator.settings import Scope, load

FILE = """
release = "demo"
namespace = "prod"
watch = "cluster"
service = "anabranchs://demo.prod.svc:7420?ca=/ca.crt&token_file=/token"

[certificates]
mode = "self"
authority = "demo-ca"
bundle = "demo-ca"

[[certificates.leaves]]
secret = "demo-peer-tls"
names = ["*.demo-metadata.prod.svc"]
"""


def test_a_file_a_variable_and_a_flag_one_over_the_other(tmp_path: Path) -> None:
    file = tmp_path / "operator.toml"
    file.write_text(FILE, encoding="utf-8")
    environment = {
        "ANABRANCH_OPERATOR_CONFIG": str(file),
        "ANABRANCH_OPERATOR_RELEASE": "other",
        "ANABRANCH_OPERATOR_RETRY_S": "1",
        "ANABRANCH_TOKEN": "somebody else's",
    }
    settings = load({"retry_s": "0.5"}, environment)
    assert (settings.release, settings.namespace) == ("other", "prod")
    assert settings.watch is Scope.CLUSTER
    assert settings.terms.retry_s == 0.5
    assert settings.certificates.mode is Mode.SELF
    leaf = Leaf(secret="demo-peer-tls", names=("*.demo-metadata.prod.svc",))
    assert settings.certificates.leaves == (leaf,)


def test_what_the_machine_is_told_comes_of_them() -> None:
    surroundings = load({"release": "demo"}, {}).surroundings("here")
    assert surroundings.namespace == "here"
    assert surroundings.metadata == "demo-metadata"
    assert not surroundings.tls


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lease_s", "5"),
        ("retry_s", "11"),
        ("probe_port", "70000"),
        ("requests_per_s", "0"),
        ("service", "http://nowhere"),
        ("watch", "planet"),
        ("surplus", "1"),
    ],
)
def test_what_cant_work_is_refused(name: str, value: str) -> None:
    with pytest.raises(BadRequest):
        load({}, {f"ANABRANCH_OPERATOR_{name.upper()}": value})
