"""Which programs of Kubernetes are taken, and what stands in the way of those that aren't there."""

from pathlib import Path

import pytest
from tests.kubernetes.binaries import (
    HELM,
    HYPERKUBE,
    HYPERKUBES,
    MINOR,
    program,
    stands_in_the_way,
)


def test_the_pinned_version_is_what_the_programs_are_told_they_are() -> None:
    assert HYPERKUBE.version.startswith(f"v1.{MINOR}.")
    assert f"gitVersion={HYPERKUBE.version}" in HYPERKUBE.linked
    assert f"version.version={HELM.version}" in HELM.linked


def test_programs_of_a_named_folder_are_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    named = tmp_path / "kubectl"
    named.touch(0o700)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert program("kubectl") == str(named)
    assert stands_in_the_way("kubectl") is None
    stands = stands_in_the_way("kubectl", "kubelet")
    assert stands is not None
    assert stands.startswith("kubelet isn't built: `make servers-kubernetes` does it with Go 1.")


@pytest.mark.parametrize("name", HYPERKUBES)
def test_six_programs_are_one_binary(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    binary = tmp_path / "hyperkube"
    binary.touch(0o700)
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv(HYPERKUBE.override, str(binary))
    for _ in range(2):
        link = Path(program(name))
        assert link.name == name
        assert link.resolve() == binary
