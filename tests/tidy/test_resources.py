"""CRDs, admission policies and pages are what the code says; the CRDs' chart is whole."""

import json
from pathlib import Path

import yaml

from anabranch_operator import reference
from anabranch_operator.api.__main__ import written

CHART = Path("charts/anabranch-crds")


def test_what_is_written_from_the_structs_is_what_they_say(root: Path) -> None:
    for path, text in written().items():
        found = (root / path).read_text(encoding="utf-8")
        assert found == text, f"{path}: run python -m anabranch_operator.api"


def test_the_operators_page_is_what_its_settings_and_metrics_say(root: Path) -> None:
    found = (root / reference.PAGE).read_text(encoding="utf-8")
    assert found == reference.page(), "run: python -m anabranch_operator.reference"


def test_nothing_else_lies_where_they_are_written(root: Path) -> None:
    ours = set(written())
    for folder in (Path("crds"), CHART / "templates"):
        there = {folder / path.name for path in (root / folder).iterdir()}
        assert there == {path for path in ours if path.parent == folder}


def test_every_value_of_the_chart_is_described(root: Path) -> None:
    values = yaml.safe_load((root / CHART / "values.yaml").read_text())
    schema = json.loads((root / CHART / "values.schema.json").read_text())
    assert schema["properties"].keys() - {"global"} == values.keys()
    assert not schema["additionalProperties"]
    page = (root / CHART / "README.md").read_text()
    for name in values:
        described = schema["properties"][name]["description"]
        assert f"| {name} | object | `{{}}` | {described} |" in page
        assert f"# -- {described}\n{name}:" in (root / CHART / "values.yaml").read_text()


def test_the_charts_readme_has_its_version(root: Path) -> None:
    chart = yaml.safe_load((root / CHART / "Chart.yaml").read_text())
    page = (root / CHART / "README.md").read_text()
    for what in (f"Version: {chart['version']}", f"AppVersion: {chart['appVersion']}"):
        assert f"![{what}]" in page
    assert f"Kubernetes: `{chart['kubeVersion']}`" in page
    assert chart["description"] in page
