"""How records are printed: as text, as JSON, or just their bytes."""

import sys
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from anabranch.cli.render.document import document
from anabranch.cli.render.output import Output
from anabranch.cli.render.words import shown
from anabranch.client.aio import Service
from anabranch.client.session.records import LogRecord
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.errors import Refresh, UnknownLog
from anabranch.core.types import LogId


class RecordFormat(StrEnum):
    TEXT = "text"
    JSON = "json"
    RAW = "raw"


class Printer:
    """Prints records of one log.

    `names`: those of the logs that records may come from, if origins are asked for. `shards`: print
    the shard of a record that was appended to one. `delimiter`: what stands between key and value
    where only bytes are printed; without one, keys aren't.
    """

    def __init__(
        self,
        out: Output,
        form: RecordFormat,
        *,
        names: dict[LogId, str] | None = None,
        shards: bool = False,
        delimiter: bytes | None = None,
    ) -> None:
        self._out, self._form = out, form
        self._names, self._shards, self._delimiter = names, shards, delimiter

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
            sys.stdout.buffer.write(b"".join(map(self._raw, records)))
        elif self._form is RecordFormat.JSON:
            self._out.lines(map(self.document, records))
        else:
            sys.stdout.write("".join(f"{self.text(record)}\n" for record in records))

    def text(self, record: LogRecord) -> str:
        """Position, origin or shard if asked for, key if there is one, value."""
        parts = [f"{record.position:>8}"]
        if record.shard:
            parts += [record.shard] * self._shards
        elif self._names is not None:
            parts.append(f"{self._origin(record)}:{record.origin_position}")
        if record.key is not None:
            parts.append(f"[{shown(record.key)}]")
        parts.append(shown(record.value))
        return "  ".join(parts)

    def document(self, record: LogRecord) -> dict[str, Any]:
        return document(record, self._origin(record))

    def _raw(self, record: LogRecord) -> bytes:
        """The bytes of a record, as `append -K` takes them: without a key there is no delimiter."""
        value = (record.value or b"") + b"\n"
        if self._delimiter is None or record.key is None:
            return value
        return record.key + self._delimiter + value

    def _origin(self, record: LogRecord) -> str | int:
        """Its name; its number if it has none any more."""
        return (self._names or {}).get(record.origin_log, record.origin_log)


async def origins(service: Service, log: Description) -> dict[LogId, str]:
    """The names of all logs of its tree."""
    return {each.id: each.name async for each in service.logs(tree=log.root)}
