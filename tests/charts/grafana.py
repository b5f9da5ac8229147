"""What a dashboard of Grafana is made of, and its JSON."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

_WIDTH, _HEIGHT = 24, 8
_SCHEMA = 39
"""Of Grafana 10 and later."""
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture; its queries by their legends."""

    title: str
    says: str
    queries: dict[str, str]
    unit: str = "short"
    kind: str = "timeseries"
    wide: int = 8


@dataclass(frozen=True, slots=True)
class Row:
    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True, slots=True)
class Dashboard:
    uid: str
    title: str
    says: str
    known_by: str
    """A metric by which namespaces are found that have something to show."""
    rows: Sequence[Row]


def as_json(dashboard: Dashboard) -> str:
    found = {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.says,
        "tags": ["anabranch"],
        "schemaVersion": _SCHEMA,
        "editable": False,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "",
        "templating": {"list": _variables(dashboard)},
        "panels": list(_panels(dashboard)),
    }
    return json.dumps(found, indent=1) + "\n"


def _variables(dashboard: Dashboard) -> list[dict[str, Any]]:
    known = f"label_values({dashboard.known_by}, namespace)"
    return [
        {
            "name": "datasource",
            "label": "Data source",
            "type": "datasource",
            "query": "prometheus",
            "current": {},
        },
        {
            "name": "namespace",
            "label": "Namespace",
            "type": "query",
            "datasource": _SOURCE,
            "query": {"query": known, "refId": "namespace"},
            "definition": known,
            "refresh": 2,
            "includeAll": True,
            "allValue": ".*",
            "multi": True,
            "current": {},
        },
    ]


def _panels(dashboard: Dashboard) -> Iterator[dict[str, Any]]:
    """From the left to the right, and from the top down."""
    number, top = 0, 0
    for row in dashboard.rows:
        number += 1
        yield {
            "id": number,
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "panels": [],
            "gridPos": {"x": 0, "y": top, "w": _WIDTH, "h": 1},
        }
        top, left, height = top + 1, 0, _HEIGHT
        for panel in row.panels:
            if left + panel.wide > _WIDTH:
                top, left = top + height, 0
            number += 1
            height = _HEIGHT // 2 if panel.kind == "stat" else _HEIGHT
            place = {"x": left, "y": top, "w": panel.wide, "h": height}
            yield _panel(number, panel, place)
            left += panel.wide
        top += height


def _panel(number: int, panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    table = panel.kind == "table"
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.says,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + at),
                "datasource": _SOURCE,
                "expr": expression,
                "legendFormat": legend,
                **({"format": "table", "instant": True} if table else {}),
            }
            for at, (legend, expression) in enumerate(panel.queries.items())
        ],
    }


def per_s(metric: str, by: str = "") -> str:
    grouping = f" by ({by})" if by else ""
    return f'sum{grouping} (rate({metric}{{namespace=~"$namespace"}}[$__rate_interval]))'


def now(metric: str, by: str = "", how: str = "sum") -> str:
    grouping = f" by ({by})" if by else ""
    return f'{how}{grouping} ({metric}{{namespace=~"$namespace"}})'


def each(metric: str, by: str) -> str:
    """Of what every operator tells alike, whether it leads or not."""
    told = f'max by (namespace, {by}) ({metric}{{namespace=~"$namespace"}})'
    return f"sum by ({by}) ({told})"
