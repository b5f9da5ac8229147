"""Records in JSON: text as it is, anything else in base64; bodies to records, batches to JSON."""

import asyncio
import binascii
import re
from collections.abc import AsyncGenerator, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from fastapi.exceptions import RequestValidationError
from pydantic import Field, ValidationError

from anabranch.apps.http.calls import Asking
from anabranch.apps.http.models import Moment, RequestModel, ResponseModel
from anabranch.client.session.records import LogRecord
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.errors import BadRequest, BatchTooLarge, BatchUnreadable
from anabranch.core.machine import Buffer
from anabranch.core.records.json import Encoding, decode, encode, in_fitting
from anabranch.core.records.origins import Run, identity, stretches
from anabranch.core.records.record import UNSTAMPED, Record

PORTION = 256
"""Records and headers that are made into JSON before anything else in the loop gets its turn."""
PORTION_BYTES = 64 << 10
"""A portion also ends with the record whose JSON reaches so much."""
_TURN_S = 0.01
"""So long may decoding take before others get their turn: a small batch may unpack to much."""
_HEADER_BYTES = 32
"""What a header adds to a page, beside its value: its JSON, even if all of it is empty."""
_SHORT = b'"\\\b\f\n\r\t'
"""What JSON writes with two characters; other control characters take six."""
_PLAIN = bytes(byte for byte in range(256) if byte >= 0x20 and byte not in _SHORT)
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


AS_READ = "May stand there as it was read, and isn't used."


class HeaderIn(RequestModel):
    name: str
    value: str | None = None


class RecordIn(RequestModel):
    value: str | None = Field(examples=["40 apples"])
    key: str | None = None
    headers: tuple[HeaderIn, ...] = ()
    timestamp: Moment | None = Field(None, description="By default when it is appended.")
    encoding: Encoding = Field(Encoding.TEXT, description="Of value, key and header values.")
    position: Any = Field(None, description=AS_READ)
    origin: Any = Field(None, description=AS_READ)
    id: Any = Field(None, description=AS_READ)

    def record(self) -> Record:
        encoding = self.encoding
        return Record(
            decode(self.value, encoding),
            decode(self.key, encoding),
            tuple((header.name, decode(header.value, encoding)) for header in self.headers),
            UNSTAMPED if self.timestamp is None else self.timestamp,
        )


class RecordsIn(RequestModel):
    records: list[RecordIn] = Field(min_length=1)


class Header(ResponseModel):
    name: str
    value: str | None


class Origin(ResponseModel):
    """Where a record was appended; a promotion doesn't change it."""

    log: str
    position: int = Field(description="When it was appended: it may have moved since.")


class RecordOut(ResponseModel):
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


class Appended(ResponseModel):
    """Durable. The records follow each other from `position` on, in a Belfast log with others'
    between them.
    """

    log: str
    count: int
    position: int | None = Field(
        description="Of the first record; null while an undecided promotable fork may move it, and "
        "where the order is bound later: of Erwin logs and lazy appends, unless `sync` waits."
    )
    receipt: str | None = Field(description="Redeemed for the position after the decision.")


class Sized(NamedTuple):
    """A record, and how many bytes of JSON its content takes, with a share for each header."""

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
    loop = asyncio.get_running_loop()
    portion = _Portion()
    decoded = stretches(runs, batches, log)
    unreadable: BatchUnreadable | None = None
    began = loop.time()
    while True:
        try:
            stretch = next(decoded, None)
        except BatchUnreadable as error:
            stretch, unreadable = None, error
        if stretch is None:
            break
        if loop.time() - began > _TURN_S:
            await asyncio.sleep(0)
            began = loop.time()
        name = await ask.name(stretch.origin_log)
        for ahead, record in enumerate(stretch.records):
            origin = Origin(log=name, position=stretch.origin_first + ahead)
            id = identity(stretch.origin_log, origin.position)
            shown = _shown(record, stretch.first + ahead, origin, id, encoding)
            if portion.add(record, shown):
                yield portion.records
                portion = _Portion()
                await asyncio.sleep(0)
                began = loop.time()
    if portion.records:
        yield portion.records
    if unreadable is not None:
        raise unreadable


async def shown_portions(
    found: Iterable[LogRecord], log: Description, encoding: Encoding | None
) -> AsyncGenerator[list[Sized]]:
    """Records that a client has read from a log without forks, a little at a time: there a record
    stays where it was appended.
    """
    portion = _Portion()
    for record in found:
        origin = Origin(log=log.name, position=record.position)
        id = identity(log.id, record.position)
        if portion.add(record, _shown(record, record.position, origin, id, encoding)):
            yield portion.records
            portion = _Portion()
            await asyncio.sleep(0)
    if portion.records:
        yield portion.records


class _Portion:
    """Records that are made into JSON at one go."""

    def __init__(self) -> None:
        self.records: list[Sized] = []
        self._cost = self._bytes = 0

    def add(self, record: Record | LogRecord, shown: RecordOut) -> bool:
        """Take one more; True if it was the last."""
        size = _rendered_bytes(record, shown.encoding)
        self.records.append(Sized(shown, size))
        self._cost += 1 + len(record.headers)
        self._bytes += size
        return self._cost >= PORTION or self._bytes >= PORTION_BYTES


def _rendered_bytes(record: Record | LogRecord, encoding: Encoding) -> int:
    size = _HEADER_BYTES * len(record.headers)
    values = [record.value, record.key]
    for name, value in record.headers:
        size += _text_bytes(name.encode())
        values.append(value)
    measure = _text_bytes if encoding is Encoding.TEXT else _base64_bytes
    return size + sum(measure(value) for value in values if value)


def _text_bytes(text: bytes) -> int:
    escaped = text.translate(None, _PLAIN)
    return len(text) + len(escaped) + 4 * len(escaped.translate(None, _SHORT))


def _base64_bytes(content: bytes) -> int:
    return -(-len(content) // 3) * 4


def _shown(
    record: Record | LogRecord, position: int, origin: Origin, id: str, encoding: Encoding | None
) -> RecordOut:
    """In the encoding asked for; if none was, as text where all of it is text."""
    if encoding is None:
        return in_fitting(partial(_shown, record, position, origin, id))
    return RecordOut(
        position=position,
        value=encode(record.value, encoding),
        key=encode(record.key, encoding),
        headers=[
            Header(name=name, value=encode(value, encoding)) for name, value in record.headers
        ],
        timestamp=record.timestamp,
        encoding=encoding,
        origin=origin,
        id=id,
    )
