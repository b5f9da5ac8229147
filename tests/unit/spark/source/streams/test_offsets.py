"""Offsets come back from a checkpoint as they were, and nothing else does."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.errors import BadRequest
from anabranch_spark.source.streams.offsets import Offset, as_json, from_json

numbers = st.integers(0, (1 << 62) - 1)


@given(st.builds(Offset, numbers, numbers, numbers))
def test_an_offset_comes_back_from_its_text(offset: Offset) -> None:
    assert from_json(json.loads(json.dumps(as_json(offset)))) == offset


def test_the_text_is_the_one_of_the_documents() -> None:
    text = json.dumps(as_json(Offset(7, 2, 350)))
    assert text == '{"v": 1, "log": 7, "generation": 2, "position": 350}'


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"v": 2, "log": 1, "generation": 0, "position": 0},
        {"v": 1, "log": 1, "generation": 0},
        {"v": 1, "log": 1, "generation": 0, "position": "0"},
        {"v": 1, "log": 1, "generation": 0, "position": -1},
        {"v": 1, "log": 1, "generation": 0, "position": 0, "more": 1},
        {"offset": 17},
    ],
)
def test_what_is_no_offset_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(BadRequest, match="the offset in the checkpoint"):
        from_json(given)
