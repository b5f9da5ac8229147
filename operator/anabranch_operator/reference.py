"""docs/reference/operator.md, written from the operator's settings and from what it counts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import msgspec

from anabranch.apps.settings import PREFIX as EVERYBODYS
from anabranch.apps.settings import options
from anabranch_operator.metrics import PREFIX as COUNTED
from anabranch_operator.metrics import Metrics
from anabranch_operator.plan.engine.events import Elected
from anabranch_operator.plan.engine.operator import Operator
from anabranch_operator.plan.engine.world import Surroundings
from anabranch_operator.settings import PREFIX, OperatorSettings

PAGE = Path("docs/reference/operator.md")

_SETTINGS = """\
# The operator's settings and metrics

Written by `python -m anabranch_operator.reference` from `settings.py` and `metrics.py` in
`operator/anabranch_operator/`. The chart sets what it must: [how](../howto/kubernetes.md).

A flag of `anabranch-operator` (`--lease-s 20`) wins over a variable (`ANABRANCH_OPERATOR_LEASE_S`),
and that over the TOML file that `--config` names.

## Settings

| name | variable | default | |
|---|---|---|---|
"""

_METRICS = """
## Metrics

At `/metrics` of the probes' port, beside `/healthz` and `/readyz`, for Prometheus. Of logs, forks
and pools only the one that leads tells.

| name | kind | |
|---|---|---|
"""


def page() -> str:
    return _SETTINGS + "".join(_settings()) + _METRICS + "".join(_metrics())


def _settings() -> Iterator[str]:
    for each in options(OperatorSettings):
        variable = f"{PREFIX}{each.variable.removeprefix(EVERYBODYS)}"
        prose = " ".join(each.prose.split())
        yield f"| `{'.'.join(each.path)}` | `{variable}` | {_default(each.default)} | {prose} |\n"


def _default(value: Any) -> str:
    if value is msgspec.NODEFAULT:
        return "must be given"
    if value is None or value in ("", ()):
        return "none"
    shown = ",".join(map(str, cast("tuple[object, ...]", value))) if type(value) is tuple else value
    return f"`{str(shown).lower()}`"


def _metrics() -> Iterator[str]:
    machine = Operator(Surroundings(namespace="", release=""), {}, ())
    machine.step(0, Elected(1))  # a leader shows more than a standby
    for family in Metrics(machine, lambda: 0, lambda: 0.0).registry.collect():
        if family.name.startswith(COUNTED):
            total = "_total" if family.type == "counter" else ""
            yield f"| `{family.name}{total}` | {family.type} | {family.documentation} |\n"


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
