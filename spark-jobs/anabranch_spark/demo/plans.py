"""The demo's plans: restocks for the items that run out, with a mistake and without."""

import json
from collections.abc import Iterable, Mapping

EXPECTATIONS = """\
version: 1
value:
  format: json
  schema: "kind string, item string, quantity bigint"
expectations:
  - {name: only restocks, expect: in, column: kind, values: [restock]}
  - {name: known items, expect: regex, column: item, pattern: "^item-[0-9]{2}$"}
  - {name: sensible quantities, expect: range, column: quantity, min: 1, max: 100000}
  - {name: a plan has restocks, expect: row_count, min: 1}
"""
MARGIN = 50
"""Restocked of each item beyond what was lacking."""


def restocks(short: Iterable[Mapping[str, object]]) -> list[bytes]:
    """A restock for each row of the analysis `supply`."""
    events: list[bytes] = []
    for row in short:
        lowest = row["lowest"]
        assert isinstance(lowest, int), row
        event = {"kind": "restock", "item": row["item"], "quantity": MARGIN - lowest}
        events.append(json.dumps(event).encode())
    return events


def mistaken(events: list[bytes]) -> list[bytes]:
    """The same plan as a hasty agent writes it: the last quantity is a word, the first negative."""
    first, last = json.loads(events[0]), json.loads(events[-1])
    first["quantity"], last["quantity"] = -first["quantity"], "plenty"
    wrong = [json.dumps(each).encode() for each in (first, last)]
    return [wrong[0], *events[1:-1], wrong[1]]
