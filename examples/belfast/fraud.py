"""Fraud monitoring: what each user has spent so far, and an alert where a transaction is far above
that. Every reader reads all shards, and of them only its own users.
"""

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from examples.belfast.application import Ingested, Interest, Undo
from examples.database import Database

from anabranch.client.session.records import LogRecord
from anabranch.core.belfast.protocol.messages import Where

USERS = 100_000
BRANCHES = 64
"""Transactions come from any of them, whoever the user is."""
TIMES = 10.0
"""A transaction so many times a user's mean looks like somebody else's."""
KNOWN_AFTER = 3
"""Transactions, before there is a mean to speak of."""

_TRANSACTION = struct.Struct("<Id")
_SCHEMA = """
CREATE TABLE users (id INTEGER PRIMARY KEY, transactions INTEGER, spent REAL, highest REAL);
"""
_PUT = "INSERT OR REPLACE INTO users VALUES (?, ?, ?, ?)"
_DROP = "DELETE FROM users WHERE id = ?"


class FraudReader:
    def __init__(self, database: Path) -> None:
        self._database = Database(database, _SCHEMA)
        self.alerts: list[str] = []

    def do(self, records: Sequence[LogRecord]) -> Undo:
        undo: list[tuple[str, tuple[object, ...]]] = []
        alerts: list[str] = []
        self._database.begin()
        for record in records:
            user, amount = _TRANSACTION.unpack_from(record.value or b"")
            row = self._database.row("SELECT * FROM users WHERE id = ?", user)
            undo.append((_DROP, (user,)) if row is None else (_PUT, row))
            count, spent, highest = _figures(row)
            if count >= KNOWN_AFTER and amount > TIMES * spent / count:
                alerts.append(f"{record.position}: user {user} spends {amount:.2f}")
            self._database.change(_PUT, user, count + 1, spent + amount, max(highest, amount))
        self._database.commit()
        return Undo(undo, None, alerts)

    def undo(self, records: Sequence[LogRecord], done: Undo) -> None:
        self._database.take_back(done.rows)

    def on_confirm(self, records: Sequence[LogRecord], done: Undo) -> None:
        self.alerts += done.alerts

    def output(self) -> list[tuple[object, ...]]:
        rows = self._database.rows("SELECT * FROM users ORDER BY id")
        return [*rows, *((alert,) for alert in self.alerts)]

    def close(self) -> None:
        self._database.close()


def _figures(row: tuple[object, ...] | None) -> tuple[int, float, float]:
    if row is None:
        return 0, 0.0, 0.0
    _, count, spent, highest = row
    assert isinstance(count, int)
    assert isinstance(spent, float)
    assert isinstance(highest, float)
    return count, spent, highest


class Fraud:
    name = "fraud"

    def records(self, rng: Random) -> Iterator[Ingested]:
        """Some users buy far more often than others; one transaction in 300 is a fraud."""
        while True:
            user = min(int(rng.paretovariate(0.4)), USERS) - 1
            amount = rng.lognormvariate(3, 0.5) * (40 if rng.random() < 1 / 300 else 1)
            branch = rng.randrange(BRANCHES)
            yield Ingested(branch, b"%d" % user, _TRANSACTION.pack(user, amount))

    def interests(self, shards: Sequence[str], readers: int) -> list[Interest]:
        return [
            Interest(where=Where(key_modulus=readers, key_remainder=number))
            for number in range(readers)
        ]

    def reader(self, database: Path) -> FraudReader:
        return FraudReader(database)
