"""Where the API server is, and who we are towards it."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from anabranch.core.errors import BadRequest
from anabranch_operator.kube.access import Token, find, from_account, from_kubeconfig


def kubeconfig(folder: Path, cluster: dict[str, str], user: dict[str, str]) -> str:
    told: dict[str, Any] = {
        "clusters": [{"name": "c", "cluster": {"server": "https://there:6443/", **cluster}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "n"}}],
        "current-context": "x",
    }
    path = folder / "config"
    path.write_text(json.dumps(told), encoding="utf-8")
    return str(path)


def test_a_kubeconfigs_certificates_lie_in_it_or_beside_it(tmp_path: Path) -> None:
    (tmp_path / "client.crt").write_text("cert")
    encoded = base64.b64encode(b"key").decode()
    user = {"client-certificate": "client.crt", "client-key-data": encoded}
    access = from_kubeconfig(kubeconfig(tmp_path, {}, user))
    assert access.server == "https://there:6443"
    assert access.namespace == "n"
    assert access.identity == ("cert", "key")


def test_a_kubeconfig_without_its_context_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("clusters: []")
    with pytest.raises(BadRequest, match="kubeconfig"):
        from_kubeconfig(str(tmp_path / "config"))


def test_a_pods_account_is_its_namespace_and_a_token_that_is_read_again(tmp_path: Path) -> None:
    for name, content in (("namespace", "home\n"), ("ca.crt", "ca"), ("token", "first\n")):
        (tmp_path / name).write_text(content)
    access = from_account(tmp_path, "fd00::1", "443")
    assert access.server == "https://[fd00::1]:443"
    assert access.namespace == "home"
    token = Token(access)
    assert token.header() == {"Authorization": "Bearer first"}
    (tmp_path / "next").write_text("second")
    (tmp_path / "next").rename(tmp_path / "token")
    assert token.header() == {"Authorization": "Bearer second"}


def test_a_token_is_never_shown(tmp_path: Path) -> None:
    access = from_kubeconfig(kubeconfig(tmp_path, {}, {"token": "secret-word"}))
    assert Token(access).header() == {"Authorization": "Bearer secret-word"}
    assert "secret-word" not in repr(access)


def test_what_is_named_comes_first(tmp_path: Path) -> None:
    named = kubeconfig(tmp_path, {}, {})
    in_a_pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    assert find(in_a_pod, named).server == "https://there:6443"
    assert find({"KUBECONFIG": named}).server == "https://there:6443"
