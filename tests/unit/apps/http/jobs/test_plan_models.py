"""Ids, names and seals of scan plans as text, which numbers in JSON couldn't hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from anabranch.apps.http.jobs.plan_models import Address, PlanAddress, SliceIn
from anabranch.core.bolt.protocol.scans import PlanId, SealedSlice
from anabranch.core.records.objects import ObjectName
from anabranch.core.types import LogId, ObjectId

ADDRESS = TypeAdapter(Address)
FIXED = {"object": "main/data/00000001/0000000000012", "offset": 0, "length": 9, "seal": "0" * 16}


@given(st.integers(0, (1 << 53) - 1), st.integers(0, (1 << 63) - 1))
def test_an_id_is_read_back_from_its_text(log: int, plan: int) -> None:
    address = PlanAddress(LogId(log), PlanId(plan))
    assert ADDRESS.validate_python(address.text) == address


@given(
    st.text("0123456789abcdefx- ", max_size=24)
    | st.text(max_size=12)
    | st.sampled_from(
        [
            "1-٠123456789abcdef",
            "9007199254740992-0123456789abcdef",
            "1-8000000000000000",
            "1-0123456789abcdef\n",
        ]
    )
)
def test_what_is_no_id_is_refused_and_nothing_else(text: str) -> None:
    try:
        address = ADDRESS.validate_python(text)
    except ValidationError:
        return
    assert address.text == text, "each id has one spelling"


@given(st.integers(0, (1 << 64) - 1), st.integers(0, (1 << 64) - 1), st.integers(0, 1 << 52))
def test_a_slice_is_what_a_page_named(object: int, seal: int, offset: int) -> None:
    name = str(ObjectName.of("main", ObjectId(object)))
    given = {"object": name, "offset": offset, "length": 7, "seal": f"{seal:016x}"}
    as_read = {"first": 3, "count": 1, "skip": 0, "origin": {"log": "orders", "position": 3}}
    found = SliceIn.model_validate({**given, **as_read})
    assert found.sealed == SealedSlice(ObjectId(object), offset, 7, seal)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("object", ""),
        ("object", "main/data/1/2"),
        ("object", "main/data/99999999/0000000000012"),
        ("object", 12),
        ("object", "x" * 400 + FIXED["object"]),
        ("offset", -1),
        ("offset", "0"),
        ("length", 1 << 53),
        ("length", True),
        ("seal", "0" * 15),
        ("seal", "G" * 16),
        ("seal", "A" * 16),
        ("seal", "0" * 16 + "\n"),
        ("seal", 0),
        ("url", "file:///x"),
    ],
)
def test_what_is_no_slice_is_refused(field: str, value: object) -> None:
    assert SliceIn.model_validate(FIXED)
    with pytest.raises(ValidationError, match=field):
        SliceIn.model_validate({**FIXED, field: value})
