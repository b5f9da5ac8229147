"""Records as lines of JSON: what is printed can be appended, and is the same again."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.cli.render.document import document, parsed
from anabranch.client.session.records import LogRecord
from anabranch.core.errors import BadRequest
from anabranch.core.types import LogId

CONTENT = st.none() | st.binary(max_size=8) | st.text(max_size=8).map(str.encode)


@given(
    CONTENT,
    CONTENT,
    st.lists(st.tuples(st.text(st.characters(codec="utf-8"), max_size=4), CONTENT), max_size=3),
    st.integers(0, 1 << 40),
)
def test_what_is_printed_is_read_as_the_same_record(
    value: bytes | None,
    key: bytes | None,
    headers: list[tuple[str, bytes | None]],
    timestamp: int,
) -> None:
    read = LogRecord(3, value, key, tuple(headers), timestamp, LogId(1), 2)
    line = msgspec.json.encode(document(read, "orders"))
    again = parsed(line, "line 1")
    assert (again.value, again.key, again.headers, again.timestamp) == (
        read.value,
        read.key,
        read.headers,
        read.timestamp,
    )


def test_the_fields_are_those_of_http() -> None:
    read = LogRecord(3, b"\xff", b"k", (("h", None),), 5, LogId(1), 2)
    assert document(read, "orders") == {
        "position": 3,
        "value": "/w==",
        "key": "aw==",
        "headers": [{"name": "h", "value": None}],
        "timestamp": 5,
        "encoding": "base64",
        "origin": {"log": "orders", "position": 2},
        "id": "1-2",
    }


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{}", "missing required field `value`"),
        (b'{"value": 1}', "Expected `str | null`"),
        (b'{"value": "a", "vlaue": "b"}', "unknown field `vlaue`"),
        (b'{"value": "a", "encoding": "base64"}', "isn't base64"),
        (b'{"value": "a", "encoding": "hex"}', "Invalid enum value"),
        (b'{"value": "a", "timestamp": "2026-01-31T12:00:00"}', "time zone"),
        (b'{"value": "a", "timestamp": -1}', "-1 isn't from 0"),
        (b"[]", "Expected `object`"),
        (b"\xff", "no record in JSON"),
    ],
)
def test_what_is_no_record_is_refused(line: bytes, reason: str) -> None:
    with pytest.raises(BadRequest) as refused:
        parsed(line, "line 1")
    assert reason in refused.value.message


def test_times_are_milliseconds_or_rfc_3339() -> None:
    for time in (
        b"1767225600250",
        b'"2026-01-01T00:00:00.250Z"',
        b'"2026-01-01T02:00:00.250+02:00"',
    ):
        assert parsed(b'{"value": null, "timestamp": %s}' % time, "here").timestamp == 1767225600250


def test_a_line_that_is_nested_without_end_is_refused() -> None:
    with pytest.raises(BadRequest, match="nested too deep"):
        parsed(b'{"origin":' + b"[" * 100_000, "line 1")
