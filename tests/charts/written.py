"""Writes of the chart what `values.py` decides: `python -m tests.charts.written`."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import yaml
from tests.charts.dashboards import DASHBOARDS
from tests.charts.grafana import as_json
from tests.charts.values import Values, free_settings

from anabranch.apps.settings import Option
from anabranch.shell.runtime.prose import proses

CHART = Path("charts/anabranch")
SETTINGS = "settings"
_DRAFT = "http://json-schema.org/draft-07/schema#"
_TABLE = "## Values"
_ELSEWHERE = (
    "What `settings` takes is told in [the settings](../../docs/reference/pods.md) and "
    "[the limits](../../docs/reference/limits.md)."
)
_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Entry:
    """One value, or a table of them."""

    path: tuple[str, ...]
    prose: str
    kind: Any
    default: Any

    @property
    def name(self) -> str:
        return self.path[-1]

    @property
    def is_table(self) -> bool:
        return isinstance(self.kind, type) and issubclass(self.kind, msgspec.Struct)


def entries(kind: Any, default: Any, before: tuple[str, ...] = ()) -> Iterator[Entry]:
    """Those of one table, not what is in them."""
    for field in msgspec.structs.fields(kind):
        prose = proses(kind)[field.name]
        name = field.encode_name
        yield Entry((*before, name), prose, field.type, default[name])


def _top() -> Iterator[Entry]:
    return entries(Values, msgspec.to_builtins(Values()))


def values_yaml() -> str:
    lines = [
        "# The values of the chart and their defaults. Written by `python -m tests.charts.written`",
        "# from tests/charts/values.py, as are the schema and the table in README.md.",
    ]
    for entry in _top():
        lines += ["", *_yaml(entry, "")]
    return "\n".join(lines) + "\n"


def _yaml(entry: Entry, indent: str) -> Iterator[str]:
    if entry.is_table:
        yield f"{indent}# {entry.prose}"
        yield f"{indent}{entry.name}:"
        for each in entries(entry.kind, entry.default, entry.path):
            yield from _yaml(each, f"{indent}  ")
        return
    yield f"{indent}# -- {entry.prose}"
    yield f"{indent}{entry.name}: {json.dumps(entry.default)}"


def schema_json() -> str:
    schema = {
        "$schema": _DRAFT,
        "title": "Values of the chart anabranch",
        **_table_schema(_top(), {"global": {"type": "object", "description": "Helm's own."}}),
    }
    return json.dumps(schema, indent=2) + "\n"


def _table_schema(found: Iterator[Entry], more: dict[str, Any]) -> dict[str, Any]:
    properties = {entry.name: _schema(entry) for entry in found}
    return {"type": "object", "additionalProperties": False, "properties": properties | more}


def _schema(entry: Entry) -> dict[str, Any]:
    if entry.is_table:
        found = _table_schema(entries(entry.kind, entry.default, entry.path), {})
    elif entry.path == (SETTINGS,):
        properties = {name: _setting(option) for name, option in free_settings().items()}
        found = {"type": "object", "additionalProperties": False, "properties": properties}
    else:
        found = msgspec.json.schema(entry.kind)
    return {**found, "description": entry.prose}


def _setting(option: Option) -> dict[str, Any]:
    """A setting as the processes take it; an enum's place would be a reference."""
    found = msgspec.json.schema(option.kind)
    if "$ref" in found:
        (found,) = found["$defs"].values()
        found.pop("title", None)
    return {**found, "description": option.prose}


def readme(text: str) -> str:
    """What is written by hand, and then the table of values in helm-docs' form."""
    by_hand, found, _ = text.partition(_TABLE)
    assert found, f"README.md has lost its {_TABLE}"
    rows = [
        _TABLE,
        "",
        _ELSEWHERE,
        "",
        "| Key | Type | Default | Description |",
        "|-----|------|---------|-------------|",
        *_rows(_top()),
    ]
    return by_hand + "\n".join(rows) + "\n"


def _rows(found: Iterator[Entry]) -> Iterator[str]:
    for entry in found:
        if entry.is_table:
            yield from _rows(entries(entry.kind, entry.default, entry.path))
        else:
            kind = _JSON_TYPES[type(entry.default)]
            prose = entry.prose.replace("|", "\\|")
            default = f"`{json.dumps(entry.default)}`"
            yield f"| {'.'.join(entry.path)} | {kind} | {default} | {prose} |"


_JSON_TYPES = {str: "string", int: "int", bool: "bool", list: "list", dict: "object"}


def written(root: Path) -> dict[Path, str]:
    """Every file that is written from the code, with what it should hold."""
    page = CHART / "README.md"
    return {
        CHART / "values.yaml": values_yaml(),
        CHART / "values.schema.json": schema_json(),
        page: readme((root / page).read_text()),
        **{
            CHART / "dashboards" / f"{name}.json": as_json(dashboard)
            for name, dashboard in DASHBOARDS.items()
        },
    }


def main() -> int:
    for path, content in written(_ROOT).items():
        (_ROOT / path).parent.mkdir(exist_ok=True)
        (_ROOT / path).write_text(content)
    assert yaml.safe_load(values_yaml()) == msgspec.to_builtins(Values())
    return 0


if __name__ == "__main__":
    sys.exit(main())
