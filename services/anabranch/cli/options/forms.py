"""How arguments, lines and files become records: whole, split at a delimiter, or as JSON."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import click

from anabranch.cli.render.document import parsed
from anabranch.client.session.records import record
from anabranch.core.records.record import Record

Header = tuple[str, bytes | None]


@dataclass(slots=True)
class Form:
    """What `append` was told about its input."""

    key: bytes | None = None
    headers: tuple[Header, ...] = ()
    delimiter: bytes | None = None
    json: bool = False
    empty_is_null: bool = False
    lines: int = field(default=0, init=False)
    """How many lines were read; errors in JSON name their line."""

    def record(self, content: bytes) -> Record:
        """The record that an argument or a whole file is."""
        if self.json:
            return parsed(content, "the record")
        return self._record(content)

    def records(self, lines: Iterable[bytes]) -> list[Record]:
        """The records of the lines that come next; a blank line is no record in JSON."""
        found: list[Record] = []
        for line in lines:
            self.lines += 1
            if not self.json:
                found.append(self._record(line))
            elif line.strip():
                found.append(parsed(line, f"line {self.lines}"))
        return found

    def _record(self, content: bytes) -> Record:
        key, value = self.key, content
        if self.delimiter is not None and self.delimiter in content:
            key, _, value = content.partition(self.delimiter)
        if not self.empty_is_null:
            return record(value, key, self.headers)
        return record(value or None, key or None, self.headers)


def header(text: bytes) -> Header:
    """Parse `NAME=VALUE`."""
    name, equals, value = text.partition(b"=")
    try:
        named = name.decode()
    except UnicodeDecodeError:
        raise click.UsageError(f"the name of a header is UTF-8, not {name!r}") from None
    if not named or not equals:
        raise click.UsageError(f"a header reads NAME=VALUE, not {text.decode(errors='replace')!r}")
    return named, value
