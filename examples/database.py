"""The local database of an example's server: what it holds can be computed again from the log."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path


class Database:
    """A local database in which every change is noted together with its opposite."""

    def __init__(self, path: Path, schema: str) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        # What is lost with the machine is computed again from the log.
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.execute("PRAGMA journal_mode = MEMORY")
        self._connection.executescript(schema)

    def begin(self) -> None:
        self._connection.execute("BEGIN")

    def commit(self) -> None:
        self._connection.execute("COMMIT")

    def row(self, query: str, *values: object) -> tuple[object, ...] | None:
        return self._connection.execute(query, values).fetchone()

    def rows(self, query: str) -> list[tuple[object, ...]]:
        return self._connection.execute(query).fetchall()

    def change(self, statement: str, *values: object) -> None:
        self._connection.execute(statement, values)

    def take_back(self, statements: Sequence[tuple[str, tuple[object, ...]]]) -> None:
        """All of them, the last first, or none."""
        self.begin()
        for statement, values in reversed(statements):
            self.change(statement, *values)
        self.commit()

    def close(self) -> None:
        self._connection.close()
