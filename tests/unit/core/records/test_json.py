"""Bytes in JSON: text where all of a record is text, base64 where not, and back to the same."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.records.json import Encoding, decode, encode, in_fitting

contents = st.none() | st.binary(max_size=40) | st.text(max_size=20).map(str.encode)


@given(st.lists(contents, max_size=5))
def test_what_is_shown_is_read_back_to_the_byte(parts: list[bytes | None]) -> None:
    """By way of real JSON; null and empty differ."""

    def shown(encoding: Encoding) -> str:
        return json.dumps([encoding, [encode(each, encoding) for each in parts]])

    encoding, read = json.loads(in_fitting(shown))
    assert [decode(each, Encoding(encoding)) for each in read] == parts
    text = all(each is None or _is_text(each) for each in parts)
    assert Encoding(encoding) is (Encoding.TEXT if text else Encoding.BASE64)


def _is_text(content: bytes) -> bool:
    return content.decode("utf-8", "replace").encode() == content


@pytest.mark.parametrize(
    "text", ["a", "a=", "====", "YQ", "YQ==\n", "YQ=", "Y Q=", "YQ==YQ==", "é"]
)
def test_what_is_not_base64_is_refused(text: str) -> None:
    """Strictly: two spellings of the same bytes would be two requests under one id."""
    with pytest.raises(ValueError, match=r".+"):
        decode(text, Encoding.BASE64)


@pytest.mark.parametrize("text", ["", "é", "\0"])
def test_text_is_text(text: str) -> None:
    assert decode(text, Encoding.TEXT) == text.encode()
    assert encode(text.encode(), Encoding.TEXT) == text


def test_half_a_character_cant_stand_in_text() -> None:
    with pytest.raises(UnicodeEncodeError):
        decode("\ud800", Encoding.TEXT)
