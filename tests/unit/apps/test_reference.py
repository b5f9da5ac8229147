"""The written pages against the code they were written from."""

import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from anabranch.apps.pods.bolt_settings import BrokerSettings, MetadataSettings
from anabranch.apps.pods.bolt_settings import load as load_pod
from anabranch.apps.reference import metric_rows, metrics, pages
from anabranch.apps.settings import load
from anabranch.cli.failure import exit_code
from anabranch.core.errors import BY_CODE
from anabranch.core.limits import Limits
from anabranch.shell.telemetry.metric_help import HELP


@pytest.mark.parametrize("name", sorted(pages()))
def test_the_page_is_what_the_code_says(root: Path, name: str) -> None:
    page = (root / "docs" / "reference" / name).read_text()
    assert page == pages()[name], "run: python -m anabranch.apps.reference"


def test_every_metric_has_a_row_with_its_help_text(root: Path) -> None:
    page = (root / "docs" / "reference" / "metrics.md").read_text()
    assert page == metrics(page), "run: python -m anabranch.apps.reference"
    assert sorted(metric_rows(page)) == sorted(HELP)


def test_a_family_has_the_exit_code_that_the_page_says() -> None:
    rows = re.findall(r"^\| [a-z ]+ \| `(\w+)` \| (\d) \|$", pages()["errors.md"], re.MULTILINE)
    assert len(rows) == 5
    for code, number in rows:
        assert exit_code(BY_CODE[code](reason="a test")) == int(number), code


def test_the_settings_file_that_is_shown_is_taken(tmp_path: Path) -> None:
    shown = re.findall(r"```toml\n(.*?)```", pages()["settings.md"], re.DOTALL)
    assert len(shown) == 1
    file = tmp_path / "anabranch.toml"
    file.write_text(shown[0])
    settings = load({"config": str(file)}, {})
    asked = tomllib.loads(shown[0])
    changed = msgspec.structs.replace(Limits(), **asked.pop("limits"))
    assert settings.limits == changed != Limits()
    assert {name: getattr(settings, name) for name in asked} == asked


@pytest.mark.parametrize("kind", [MetadataSettings, BrokerSettings])
def test_the_file_that_is_shown_for_a_cluster_is_taken(kind: type[Any], tmp_path: Path) -> None:
    (shown,) = re.findall(r"```toml\n(.*?)```", pages()["pods.md"], re.DOTALL)
    file = tmp_path / "cluster.toml"
    file.write_text(shown)
    settings = load_pod(kind, {"config": str(file)}, {})
    assert (settings.cluster, settings.s3.region) == ("production", "eu-central-1")


@pytest.mark.parametrize("kind", [MetadataSettings, BrokerSettings])
def test_the_file_of_the_page_on_clusters_is_taken_with_the_secrets_it_names(
    kind: type[Any], root: Path, tmp_path: Path
) -> None:
    page = (root / "docs" / "howto" / "cluster.md").read_text()
    (shown,) = (
        each for each in re.findall(r"```toml\n(.*?)```", page, re.DOTALL) if "region" in each
    )
    file = tmp_path / "cluster.toml"
    file.write_text(shown)
    secrets = dict.fromkeys(re.findall(r"`(ANABRANCH_\w+)`", page), "secret")
    assert len(secrets) == 5
    settings = load_pod(kind, {"config": str(file), **named(kind)}, secrets)
    assert (settings.peer_token, settings.s3.secret_key) == ("secret", "secret")


def named(kind: type[Any]) -> dict[str, str]:
    return {"advertise": "broker-0:7420"} if kind is BrokerSettings else {"name": "metadata-0"}
