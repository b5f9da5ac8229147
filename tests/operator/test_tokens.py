"""Secrets with tokens, at a real API server: made once, whoever leads, and never changed."""

from base64 import b64decode
from pathlib import Path
from typing import Any

from tests.kubernetes.api_server import ApiServer, Refused, Rule
from tests.operator.installed import until
from tests.operator.running import RULES, SWIFT, Operator, running

MADE, GIVEN = "demo-belfast", "demo-s3"
SETTINGS = f"""
[[tokens]]
name = "{MADE}"
tokens = ["ANABRANCH_TOKEN", "ANABRANCH_PEER_TOKEN"]

[[tokens]]
name = "{GIVEN}"
tokens = ["ANABRANCH_S3_SECRET_KEY"]
values = {{ ANABRANCH_S3_ACCESS_KEY = "anabranch" }}
"""


def operator(server: ApiServer, namespace: str, folder: Path) -> Operator:
    """One with rights on these two Secrets and no others, as the chart grants them."""
    by_name = Rule(("get", "create", "patch"), ("",), ("secrets",), (MADE, GIVEN))
    token = server.service_account(namespace, "keeper", (*RULES, by_name), ())
    config = folder / "operator.toml"
    config.write_text(SETTINGS, encoding="utf-8")
    told = {"kubeconfig": str(server.config_of(token)), "config": str(config), **SWIFT}
    return Operator(
        server, namespace, folder, "operator", service="anabranch://127.0.0.1:1", **told
    )


def secret(server: ApiServer, namespace: str, name: str) -> dict[str, Any] | None:
    try:
        return server.ask("GET", f"/api/v1/namespaces/{namespace}/secrets/{name}")
    except Refused as refused:
        if refused.code != 404:
            raise
        return None


def test_a_missing_secret_is_made_once_and_a_given_one_stays(
    resources: ApiServer, namespace: str, tmp_path: Path
) -> None:
    given = {"data": {"ANABRANCH_S3_SECRET_KEY": "Z2l2ZW4="}}
    meta = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": GIVEN}}
    resources.ask("POST", f"/api/v1/namespaces/{namespace}/secrets", {**meta, **given})
    one = operator(resources, namespace, tmp_path)
    with running(one):
        made = until(lambda: secret(resources, namespace, MADE), "the Secret is made")
    tokens = [b64decode(value) for value in made["data"].values()]
    assert set(made["data"]) == {"ANABRANCH_TOKEN", "ANABRANCH_PEER_TOKEN"}
    assert len(set(tokens)) == 2
    assert min(map(len, tokens)) >= 32

    with running(one):
        until(lambda: one.leads or None, "it leads again")
    assert secret(resources, namespace, MADE) == made
    left = secret(resources, namespace, GIVEN)
    assert left is not None
    assert left["data"] == given["data"]
