"""Which records of a log are printed."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from anabranch.client.session.records import LogRecord


@dataclass(frozen=True, slots=True)
class Filter:
    """Chooses records by key and by pattern; without either, it chooses all."""

    key: bytes | None = None
    pattern: re.Pattern[bytes] | None = None

    @property
    def passes_all(self) -> bool:
        return self.key is None and self.pattern is None

    def passes(self, record: LogRecord) -> bool:
        """Has the record this key, and the pattern in its key, its value or a header's value?"""
        if self.key is not None and record.key != self.key:
            return False
        if self.pattern is None:
            return True
        contents = (record.value, record.key, *(content for _, content in record.headers))
        return any(content is not None and self.pattern.search(content) for content in contents)

    def choose(self, records: Iterable[LogRecord]) -> Iterator[LogRecord]:
        return filter(self.passes, records)
