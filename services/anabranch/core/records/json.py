"""Records in JSON: the one form that HTTP and the command line share.

The value, the key and the headers' values of a record stand as text if all of them are valid UTF-8,
and in base64 if not; `encoding` says which. `null` is no value or no key, `""` is an empty one.
"""

import binascii
from collections.abc import Iterator
from enum import StrEnum

from anabranch.core.records.record import Record


class Encoding(StrEnum):
    """How the bytes of one record's value, key and headers stand in JSON."""

    TEXT = "text"
    BASE64 = "base64"


def encoding_of(record: Record) -> Encoding:
    """Text if every part of the record is text."""
    try:
        for content in _contents(record):
            if content is not None:
                content.decode()
    except UnicodeDecodeError:
        return Encoding.BASE64
    return Encoding.TEXT


def encode(content: bytes | None, encoding: Encoding) -> str | None:
    """UnicodeDecodeError if bytes that aren't text are to stand as text."""
    if content is None:
        return None
    if encoding is Encoding.TEXT:
        return content.decode()
    return binascii.b2a_base64(content, newline=False).decode()


def decode(text: str | None, encoding: Encoding) -> bytes | None:
    """ValueError if the text isn't base64 where it should be."""
    if text is None:
        return None
    if encoding is Encoding.TEXT:
        return text.encode()
    return binascii.a2b_base64(text.encode(), strict_mode=True)


def _contents(record: Record) -> Iterator[bytes | None]:
    yield record.value
    yield record.key
    for _, content in record.headers:
        yield content
