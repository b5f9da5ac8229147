"""How arguments and lines become records."""

import click
import pytest

from anabranch.cli.options.forms import Form, header
from anabranch.core.errors import BadRequest
from anabranch.core.records.record import Record


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        (b"k:v", b"k", b"v"),
        (b"k:v:w", b"k", b"v:w"),
        (b":v", b"", b"v"),
        (b"k:", b"k", b""),
        (b"no delimiter", None, b"no delimiter"),
        (b"\xff:\x00", b"\xff", b"\x00"),
    ],
)
def test_a_key_ends_at_the_first_delimiter(line: bytes, key: bytes | None, value: bytes) -> None:
    assert Form(delimiter=b":").records([line]) == [Record(value, key)]


def test_empty_keys_and_values_are_null_if_that_is_asked_for() -> None:
    lines = [b":v", b"k:", b""]
    assert Form(delimiter=b":").records(lines) == [
        Record(b"v", b""),
        Record(b"", b"k"),
        Record(b""),
    ]
    nulls = [Record(b"v", None), Record(None, b"k"), Record(None, None)]
    assert Form(delimiter=b":", empty_is_null=True).records(lines) == nulls


def test_the_line_of_a_mistake_is_named_and_blank_lines_count() -> None:
    form = Form(json=True)
    assert form.records([b'{"value": "a"}', b"  "]) == [Record(b"a")]
    with pytest.raises(BadRequest, match="line 3: it is no record in JSON"):
        form.records([b"{}"])


def test_headers_keep_bytes_and_need_a_name() -> None:
    assert header(b"a=\xff=") == ("a", b"\xff=")
    for wrong in (b"a", b"=a", b"\xff=a"):
        with pytest.raises(click.UsageError):
            header(wrong)
