"""How records are printed: as text, as JSON, or just their bytes."""

import sys
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from anabranch.cli.render.output import Output, moment, shown
from anabranch.client.aio import Service
from anabranch.client.bolt.records import LogRecord
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.errors import Refresh, UnknownLog
from anabranch.core.types import LogId


class RecordFormat(StrEnum):
    TEXT = "text"
    JSON = "json"
    RAW = "raw"


class Printer:
    """Prints records of one log; `names` are those of the logs they may come from, if asked for."""

    def __init__(self, out: Output, form: RecordFormat, names: dict[LogId, str] | None) -> None:
        self._out, self._form, self._names = out, form, names

    async def learn(self, service: Service, logs: Iterable[LogId]) -> None:
        """Find out the names of logs that are no more: promoted records still come from there."""
        if self._names is None:
            return
        for log in {*logs} - self._names.keys():
            try:
                self._names[log] = (await service.log(log)).name
            except (Refresh, UnknownLog) as gone:
                self._names[log] = str(gone.facts["log"])

    @property
    def json(self) -> bool:
        return self._form is RecordFormat.JSON

    def records(self, records: Iterable[LogRecord]) -> None:
        if self._form is RecordFormat.RAW:
            values = (record.value or b"" for record in records)
            sys.stdout.buffer.write(b"".join(value + b"\n" for value in values))
        elif self._form is RecordFormat.JSON:
            self._out.lines(map(self.document, records))
        else:
            sys.stdout.write("".join(f"{self.text(record)}\n" for record in records))

    def text(self, record: LogRecord) -> str:
        """Position, origin if asked for, key if there is one, value."""
        parts = [f"{record.position:>8}"]
        if self._names is not None:
            parts.append(f"{self._origin(record)}:{record.origin_position}")
        if record.key is not None:
            parts.append(f"[{shown(record.key)}]")
        parts.append(shown(record.value))
        return "  ".join(parts)

    def document(self, record: LogRecord) -> dict[str, Any]:
        """Text where it is text; else base64, and `encoding` says so."""
        key, key_encoding = _encoded(record.key)
        value, encoding = _encoded(record.value)
        said: dict[str, Any] = {
            "position": record.position,
            "timestamp": moment(record.timestamp),
            "key": key,
            "value": value,
            "headers": [[name, _encoded(content)[0]] for name, content in record.headers],
            "origin": {"log": self._origin(record), "position": record.origin_position},
            "id": record.id,
        }
        if encoding != "text" or key_encoding != "text":
            said["encoding"] = {"key": key_encoding, "value": encoding}
        return said

    def _origin(self, record: LogRecord) -> str | int:
        """Its name; its number if it has none any more."""
        return (self._names or {}).get(record.origin_log, record.origin_log)


async def origins(service: Service, log: Description) -> dict[LogId, str]:
    """The names of all logs of its tree."""
    return {each.id: each.name async for each in service.logs(tree=log.root)}


def _encoded(content: bytes | None) -> tuple[Any, str]:
    if content is None:
        return None, "text"
    try:
        return content.decode(), "text"
    except UnicodeDecodeError:
        return content, "base64"
