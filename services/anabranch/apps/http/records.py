"""Records in JSON: text as it is, anything else in base64; bodies to records, batches to JSON."""

import asyncio
import binascii
from base64 import b64encode
from collections.abc import AsyncGenerator, Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from fastapi.exceptions import RequestValidationError
from pydantic import Field, ValidationError

from anabranch.apps.http.asking import Asking
from anabranch.apps.http.models import Asked, Moment, Told
from anabranch.core.errors import BadRequest
from anabranch.core.machine import Buffer
from anabranch.core.records.origins import Run, deliveries, identity
from anabranch.core.records.record import UNSTAMPED, Record

PORTION = 256
"""Records that are made into JSON before anything else in the loop gets its turn."""


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
    """A record as JSON, and how many bytes it carries."""

    record: RecordOut
    bytes: int


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
    ask: Asking, runs: Sequence[Run], batches: Sequence[Buffer], encoding: Encoding | None
) -> AsyncGenerator[list[Sized]]:
    """All that these runs mean, a little at a time: machines share this loop."""
    portion: list[Sized] = []
    for position, origin_log, origin_position, record in deliveries(runs, batches):
        origin = Origin(log=await ask.name(origin_log), position=origin_position)
        id = identity(origin_log, origin_position)
        portion.append(Sized(_shown(record, position, origin, id, encoding), record.size))
        if len(portion) == PORTION:
            yield portion
            portion = []
            await asyncio.sleep(0)
    if portion:
        yield portion


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
