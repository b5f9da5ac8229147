"""The reference page against what is served."""

import re
from pathlib import Path
from typing import Any

import pytest

from anabranch.apps.http import refusals
from anabranch.core.errors import AnabranchError


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs/reference/http.md").read_text()


def test_the_reference_lists_every_operation_and_no_other(shared: Any, page: str) -> None:
    served = {
        f"{method.upper()} {path}"
        for path, methods in shared.openapi["paths"].items()
        for method in methods
    }
    assert set(re.findall(r"^\| `([A-Z]+ /\S*)` \|", page, re.MULTILINE)) == served


def test_the_reference_lists_every_code_that_only_http_has(page: str) -> None:
    own = {
        f"| `{kind.code}` | {kind.status} |"
        for kind in vars(refusals).values()
        if isinstance(kind, type)
        and issubclass(kind, AnabranchError)
        and kind.__module__ == refusals.__name__
    }
    assert len(own) == 12
    assert own == set(re.findall(r"^\| `[a-z-]+` \| \d{3} \|", page, re.MULTILINE))


def test_the_reference_names_every_field_and_parameter(shared: Any, page: str) -> None:
    for methods in shared.openapi["paths"].values():
        for operation in methods.values():
            for parameter in operation.get("parameters", []):
                assert parameter["name"] in page
    schemas = shared.openapi["components"]["schemas"]
    made = ("NewLog", "NewFork", "NewPlan", "Renewal", "Signing", "SliceIn", "Completing")
    changed = ("Promoting", "Squashing", "Trimming", "CursorMove", "Redeeming")
    for body in (*made, *changed):
        for field in schemas[body]["properties"]:
            assert f"`{field}`" in page, field
