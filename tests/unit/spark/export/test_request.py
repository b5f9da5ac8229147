"""What an export may be asked for."""

from typing import Any

import pytest

from anabranch.errors import BadRequest
from anabranch_spark.export.ranges import RECORDS
from anabranch_spark.export.request import (
    SCHEMA_CHARS_MAX,
    Form,
    Request,
    limits,
    settings,
)


def request(form: Form = Form.PARQUET, target: str = "out", **given: Any) -> Request:
    return Request(service="anabranch://a", log="orders", form=form, target=target, **given)


def test_ranges_are_cut_by_records_or_by_bytes() -> None:
    assert limits(records=None, size=None) == (RECORDS, None)
    assert limits(records=5, size=None) == (5, None)
    assert limits(records=None, size=5) == (None, 5)
    assert limits(records=0, size=None) == (0, None), "it is refused later, and isn't the default"
    with pytest.raises(BadRequest, match="not by both"):
        limits(records=5, size=5)


@pytest.mark.parametrize(
    "given",
    [
        {"records": 0},
        {"records": None, "bytes": 0},
        {"branch": "b"},
        {"form": Form.DELTA, "branch": "b"},
        {"form": Form.ICEBERG, "target": "orders"},
        {"form": Form.ICEBERG, "target": "db.orders"},
        {"schema": ""},
        {"schema": "a" * (SCHEMA_CHARS_MAX + 1)},
    ],
)
def test_what_cant_be_exported_so_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(BadRequest):
        request(**given)


def test_a_branch_is_an_iceberg_tables() -> None:
    assert request(Form.ICEBERG, "lake.db.orders", branch="b").branch == "b"


def test_settings_are_sparks() -> None:
    assert settings(["spark.a=b=c"]) == {"spark.a": "b=c"}
    for bad in ("spark.a", "a=b", "=b"):
        with pytest.raises(BadRequest):
            settings([bad])
