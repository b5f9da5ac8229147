"""Records as lines of JSON: `read -o json` writes them, and `append --json` takes them.

The fields are those of HTTP; a record of a Belfast log has its `shard` in place of `origin`, `id`.
What a log gives a record may stand in a line that is appended, and isn't used: so the output of a
read can be appended elsewhere.
"""

import binascii
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from anabranch.client.session.records import LogRecord, record
from anabranch.core.errors import BadRequest
from anabranch.core.records.json import Encoding, decode, encode, in_fitting
from anabranch.core.records.record import Record


class HeaderLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    value: str | None = None


class RecordLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fields that a line of JSON may have."""

    value: str | None
    key: str | None = None
    headers: tuple[HeaderLine, ...] = ()
    timestamp: int | datetime | None = None
    encoding: Encoding = Encoding.TEXT
    position: Any = None
    origin: Any = None
    id: Any = None
    shard: Any = None


_decoder = msgspec.json.Decoder(RecordLine)


def parsed(line: bytes, where: str) -> Record:
    """The record that a line describes; BadRequest names `where` it stands."""
    try:
        found = _decoder.decode(line)
        headers = tuple((each.name, decode(each.value, found.encoding)) for each in found.headers)
        value, key = decode(found.value, found.encoding), decode(found.key, found.encoding)
    except binascii.Error as wrong:
        raise BadRequest(where, f"it isn't base64: {wrong}") from None
    except RecursionError:
        raise BadRequest(where, "it is nested too deep to be a record in JSON") from None
    except (msgspec.DecodeError, UnicodeError) as wrong:
        raise BadRequest(where, f"it is no record in JSON: {wrong}") from None
    return record(value, key, headers, found.timestamp)


def document(found: LogRecord, origin_log: str | int) -> dict[str, Any]:
    """The record as HTTP shows it."""
    return in_fitting(partial(_document, found, origin_log))


def _document(found: LogRecord, origin_log: str | int, encoding: Encoding) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "position": found.position,
        "value": encode(found.value, encoding),
        "key": encode(found.key, encoding),
        "headers": [
            {"name": name, "value": encode(content, encoding)} for name, content in found.headers
        ],
        "timestamp": found.timestamp,
        "encoding": encoding.value,
    }
    if found.shard:
        return {**shown, "shard": found.shard}
    origin = {"log": origin_log, "position": found.origin_position}
    return {**shown, "origin": origin, "id": found.id}
