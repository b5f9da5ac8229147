"""Records in JSON: text as it is, anything else in base64; bodies to records, batches to JSON."""

import asyncio
import binascii
import re
from base64 import b64encode
from collections.abc import AsyncGenerator, Iterable, Sequence
from enum import StrEnum
from itertools import islice
from typing import NamedTuple

from fastapi.exceptions import RequestValidationError
from pydantic import Field, ValidationError

from anabranch.apps.http.asking import Asking
from anabranch.apps.http.models import Asked, Moment, Told
from anabranch.core.errors import BadRequest, BatchTooLarge, BatchUnreadable
from anabranch.core.machine import Buffer
from anabranch.core.records.origins import Run, deliveries, identity
from anabranch.core.records.record import UNSTAMPED, Record

PORTION = 256
"""Records and headers that are made into JSON before anything else in the loop gets its turn."""
_HEADER_BYTES = 32
"""What a header adds to a page, beside its value: its JSON, even if all of it is empty."""
_SIGNS = {b"{": 1, b"[": 1, b",": 8}
"""How often each stands in a body for each of its records and headers at most, outside of texts."""
_TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z)'
"""One that doesn't end is no JSON, and would be looked for again from each of its quotes."""
_SIGN = {
    sign: re.compile(
        rb'[^"\%s]*+(?:%s[^"\%s]*+)*+(?:\%s|\Z)' % (sign, _TEXT, sign, sign), re.DOTALL
    )
    for sign in _SIGNS
}


class Encoding(StrEnum):
    """How the bytes of one record's value, key and headers stand in JSON."""

    TEXT = "text"
    BASE64 = "base64"


class HeaderIn(Asked):
    name: str
    value: str | None = None


class RecordIn(Asked):
    value: str | None = Field(examples=["40 apples"])
    key: str | None = None
    headers: tuple[HeaderIn, ...] = ()
    timestamp: Moment | None = Field(None, description="By default when it is appended.")
    encoding: Encoding = Field(Encoding.TEXT, description="Of value, key and header values.")

    def record(self) -> Record:
        decode = _DECODE[self.encoding]
        return Record(
            decode(self.value),
            decode(self.key),
            tuple((header.name, decode(header.value)) for header in self.headers),
            UNSTAMPED if self.timestamp is None else self.timestamp,
        )


class RecordsIn(Asked):
    records: list[RecordIn] = Field(min_length=1)


class Header(Told):
    name: str
    value: str | None


class Origin(Told):
    """Where a record was appended; a promotion doesn't change it."""

    log: str
    position: int = Field(description="When it was appended: it may have moved since.")


class RecordOut(Told):
    position: int = Field(description="In the log that is read.")
    value: str | None
    key: str | None
    headers: list[Header]
    timestamp: int = Field(description="Milliseconds since 1970.")
    encoding: Encoding = Field(description="Of value, key and header values.")
    origin: Origin
    id: str = Field(
        description="The same wherever this record is read, and no other record's.",
        examples=["1-12"],
    )


class Delivery(RecordOut):
    speculative: bool = Field(description="True if it is yet to be confirmed or failed.")


class Sized(NamedTuple):
    """A record as JSON, and how many bytes it carries, with a share for each header."""

    record: RecordOut
    bytes: int


def check_cost(body: bytes, objects_max: int, *, lines: bool) -> None:
    """Refuse a body whose JSON would cost more to read than its bytes tell: `objects_max` is for
    records and headers together. The counts are those of C code, over bytes.
    """
    if lines and body.count(b"\n") + body.count(b"\r") > 2 * objects_max:
        raise BatchTooLarge(2 * objects_max + 1, objects_max)
    for sign, often in _SIGNS.items():
        # There is one more object around all records, and the end of the body counts as well.
        most = often * objects_max + 3
        # Most bodies are small. In a large one only signs outside of texts count.
        if body.count(sign) > most:
            found = sum(1 for _ in islice(_SIGN[sign].finditer(body), most + 1))
            if found > most:
                raise BatchTooLarge(found // often, objects_max)


def from_json(body: bytes) -> list[Record]:
    try:
        parsed = RecordsIn.model_validate_json(body)
    except ValidationError as error:
        raise _invalid(error, "body") from None
    return _records(enumerate(parsed.records), "body.records")


def from_lines(body: bytes) -> list[Record]:
    """A record a line; blank ones don't count."""
    parsed: list[tuple[int, RecordIn]] = []
    for number, line in enumerate(body.splitlines(), 1):
        if line.strip():
            try:
                parsed.append((number, RecordIn.model_validate_json(line)))
            except ValidationError as error:
                raise _invalid(error, "body", number) from None
    if not parsed:
        raise BadRequest("body", "it holds no records: send one a line")
    return _records(parsed, "body")


def _records(parsed: Iterable[tuple[int, RecordIn]], where: str) -> list[Record]:
    records: list[Record] = []
    for number, each in parsed:
        try:
            records.append(each.record())
        except binascii.Error as error:
            raise BadRequest(f"{where}.{number}", f"it isn't base64: {error}") from None
    return records


def _invalid(error: ValidationError, *where: str | int) -> RequestValidationError:
    found = error.errors(include_url=False, include_input=False)
    return RequestValidationError([{**each, "loc": (*where, *each["loc"])} for each in found])


async def portions(
    ask: Asking,
    runs: Sequence[Run],
    batches: Sequence[Buffer],
    encoding: Encoding | None,
    log: str = "",
) -> AsyncGenerator[list[Sized]]:
    """All that these runs mean, a little at a time: machines share this loop."""
    portion: list[Sized] = []
    cost = 0
    decoded = deliveries(runs, batches, log)
    unreadable: BatchUnreadable | None = None
    while True:
        try:
            each = next(decoded, None)
        except BatchUnreadable as error:
            each, unreadable = None, error
        if each is None:
            break
        position, origin_log, origin_position, record = each
        origin = Origin(log=await ask.name(origin_log), position=origin_position)
        id = identity(origin_log, origin_position)
        size = record.size + _HEADER_BYTES * len(record.headers)
        portion.append(Sized(_shown(record, position, origin, id, encoding), size))
        cost += 1 + len(record.headers)
        if cost >= PORTION:
            yield portion
            portion, cost = [], 0
            await asyncio.sleep(0)
    if portion:
        yield portion
    if unreadable is not None:
        raise unreadable


def _shown(
    record: Record, position: int, origin: Origin, id: str, encoding: Encoding | None
) -> RecordOut:
    """In the encoding asked for; if none was, as text where all of it is text."""
    if encoding is None:
        try:
            return _shown(record, position, origin, id, Encoding.TEXT)
        except UnicodeDecodeError:
            encoding = Encoding.BASE64
    encode = _ENCODE[encoding]
    return RecordOut(
        position=position,
        value=encode(record.value),
        key=encode(record.key),
        headers=[Header(name=name, value=encode(value)) for name, value in record.headers],
        timestamp=record.timestamp,
        encoding=encoding,
        origin=origin,
        id=id,
    )


def _text(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _from_base64(text: str | None) -> bytes | None:
    return None if text is None else binascii.a2b_base64(text.encode(), strict_mode=True)


def _to_text(content: bytes | None) -> str | None:
    return None if content is None else content.decode()


def _to_base64(content: bytes | None) -> str | None:
    return None if content is None else b64encode(content).decode()


_DECODE = {Encoding.TEXT: _text, Encoding.BASE64: _from_base64}
_ENCODE = {Encoding.TEXT: _to_text, Encoding.BASE64: _to_base64}
