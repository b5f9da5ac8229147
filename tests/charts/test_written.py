"""What is written from the code is what is there, and what is said of it holds."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.charts.dashboards import DASHBOARDS
from tests.charts.grafana import as_json
from tests.charts.helm import CHART
from tests.charts.values import free_settings
from tests.charts.written import written

from anabranch.apps.belfast.machines import SequencerGauges, ShardGauges
from anabranch.core.belfast.sequencer.counters import SequencerCounters
from anabranch.core.belfast.shard.counters import ShardCounters
from anabranch_operator.metrics import Metrics
from anabranch_operator.plan.engine.events import Elected
from anabranch_operator.plan.engine.operator import Operator
from anabranch_operator.plan.engine.world import Surroundings

OURS = re.compile(r"\b(?:anabranch|process)_[a-z0-9_]+\b")
HISTOGRAMS = re.compile(r"_(?:bucket|sum|count)$")
ALERTS = yaml.safe_load((CHART / "alerts.yaml").read_text())["groups"]
RULES = [rule for group in ALERTS for rule in group["rules"]]


def test_the_files_are_as_the_code_writes_them(root: Path) -> None:
    for path, content in written(root).items():
        assert (root / path).read_text() == content, "run `python -m tests.charts.written`"


def test_settings_that_the_chart_decides_are_no_free_settings() -> None:
    assert {"linger_ms", "archive", "lease_s", "host"} <= free_settings().keys()
    for name in ("cluster", "s3_bucket", "token", "peer_token", "tls_cert", "peer_tls_ca"):
        assert name not in free_settings()


def test_chart_and_package_are_of_one_version(root: Path) -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert f'version = "{chart["appVersion"]}"' in (root / "pyproject.toml").read_text()
    tag = f":{chart['appVersion']}"
    images = yaml.safe_load(chart["annotations"]["artifacthub.io/images"])
    assert all(image["image"].endswith(tag) for image in images)


def test_the_charts_icon_is_the_logo(root: Path) -> None:
    icon = yaml.safe_load((CHART / "Chart.yaml").read_text())["icon"]
    _, _, packed = icon.partition("base64,")
    assert base64.b64decode(packed) == (root / "docs/logo.svg").read_bytes()


def known_metrics(root: Path) -> set[str]:
    """As the page of the services' metrics and the operator's source name them."""
    page = (root / "docs/reference/metrics.md").read_text()
    return set(OURS.findall(page)) | operators_metrics() | belfasts_metrics()


def belfasts_metrics() -> set[str]:
    """As the processes name what their machines count."""
    counters = {"sequencer": SequencerCounters, "shard": ShardCounters}
    gauges = {"sequencer": SequencerGauges, "shard": ShardGauges}
    counted = {
        f"anabranch_{subject}_{name}_total"
        for subject, kind in counters.items()
        for name in kind.__slots__
    }
    return counted | {
        f"anabranch_{subject}_{name}" for subject, kind in gauges.items() for name in kind.__slots__
    }


def operators_metrics() -> set[str]:
    """Those that it declares, each by the name under which it is served."""
    machine = Operator(Surroundings(namespace="logs", release="demo"), {}, ())
    machine.step(0, Elected(1))
    metrics = Metrics(machine, lambda: 0, lambda: 0.0)
    names = set[str]()
    for family in metrics.registry.collect():
        names.add(f"{family.name}_total" if family.type == "counter" else family.name)
    return names


def unknown(text: str, known: set[str]) -> set[str]:
    return {name for name in OURS.findall(text) if HISTOGRAMS.sub("", name) not in known} - known


def test_every_metric_of_alerts_and_dashboards_exists(root: Path) -> None:
    known = known_metrics(root)
    for rule in RULES:
        assert unknown(rule["expr"], known) == set(), rule["alert"]
    for dashboard in DASHBOARDS.values():
        for row in dashboard.rows:
            for panel in row.panels:
                told = " ".join(panel.queries.values())
                assert unknown(told, known) == set(), panel.title


def test_a_metric_that_nobody_has_is_seen() -> None:
    assert unknown("rate(anabranch_wishes_total[5m])", {"anabranch_logs"}) == {
        "anabranch_wishes_total"
    }


def test_every_alert_has_a_page_and_every_page_an_alert(root: Path) -> None:
    pages = {page.stem for page in (root / "docs/runbooks").glob("Anabranch*.md")}
    assert {rule["alert"] for rule in RULES} == pages
    index = (root / "docs/runbooks/README.md").read_text()
    for name in pages:
        assert f"[{name}]({name}.md)" in index
        text = (root / "docs/runbooks" / f"{name}.md").read_text()
        for heading in ("## Meaning", "## Impact", "## Diagnosis", "## Way out"):
            assert heading in text, name


def test_every_alert_tells_what_is_the_matter_and_how_bad_it_is() -> None:
    for rule in RULES:
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert rule["for"]
        assert set(rule["annotations"]) == {"summary", "description"}


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_dashboard_is_sound(name: str) -> None:
    """As Grafana's own linter wants it: a source to choose, ids and places of one's own."""
    found = json.loads(as_json(DASHBOARDS[name]))
    variables = {variable["name"]: variable for variable in found["templating"]["list"]}
    assert set(variables) == {"datasource", "namespace"}
    ids = [panel["id"] for panel in found["panels"]]
    assert len(ids) == len(set(ids))
    taken = set[tuple[int, int]]()
    for panel in found["panels"]:
        cells = _cells(panel["gridPos"])
        assert taken.isdisjoint(cells), panel["title"]
        taken |= cells
        assert panel["title"]
        if panel["type"] != "row":
            _check_panel(panel)


def _check_panel(panel: dict[str, Any]) -> None:
    assert panel["description"], panel["title"]
    assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
    assert panel["datasource"]["uid"] == "${datasource}"
    for target in panel["targets"]:
        assert target["datasource"]["uid"] == "${datasource}"
        if "rate(" in target["expr"] or "increase(" in target["expr"]:
            assert "[$__rate_interval]" in target["expr"], panel["title"]
        assert 'namespace=~"$namespace"' in target["expr"], panel["title"]


def _cells(place: dict[str, int]) -> set[tuple[int, int]]:
    across = range(place["x"], place["x"] + place["w"])
    assert across.stop <= 24
    return {(x, y) for x in across for y in range(place["y"], place["y"] + place["h"])}
