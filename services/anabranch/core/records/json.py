"""Records in JSON: the one form that HTTP and the command line share.

The value, the key and the headers' values of a record stand as text if all of them are valid UTF-8,
and in base64 if not; `encoding` says which. `null` is no value or no key, `""` is an empty one.
"""

import binascii
from collections.abc import Callable
from enum import StrEnum
from typing import TypeVar

Shown = TypeVar("Shown")


class Encoding(StrEnum):
    """How the bytes of one record's value, key and headers stand in JSON."""

    TEXT = "text"
    BASE64 = "base64"


def in_fitting(show: Callable[[Encoding], Shown]) -> Shown:
    """What `show` makes of a record as text, or in base64 if not all of the record is text."""
    try:
        return show(Encoding.TEXT)
    except UnicodeDecodeError:
        return show(Encoding.BASE64)


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
