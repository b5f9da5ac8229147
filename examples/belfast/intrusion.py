"""IoT intrusion detection: moving averages of seven fields of each sensor, and an alert where a
reading leaves its average too far behind. One reader for each shard.
"""

import struct
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from examples.belfast.application import Ingested, Interest, Undo
from examples.database import Database

from anabranch.client.session.records import LogRecord

FIELDS = ("temperature", "humidity", "pressure", "light", "motion", "noise", "voltage")
SENSORS = 64
MEAN_OF = 32
"""Readings of a moving average."""
TIMES = 3.0
"""A reading so many times its average is an intrusion, or a sensor that should be looked at."""

_READING = struct.Struct(f"<I{len(FIELDS)}d")
_SCHEMA = """
CREATE TABLE averages (
    sensor INTEGER, field TEXT, readings INTEGER, average REAL, PRIMARY KEY (sensor, field)
);
"""
_PUT = "INSERT OR REPLACE INTO averages VALUES (?, ?, ?, ?)"
_DROP = "DELETE FROM averages WHERE sensor = ? AND field = ?"

History = dict[tuple[int, str], deque[float]]


class IntrusionReader:
    def __init__(self, database: Path) -> None:
        self._database = Database(database, _SCHEMA)
        self._last: History = {}
        self.alerts: list[str] = []

    def do(self, records: Sequence[LogRecord]) -> Undo:
        before: History = {}
        undo: list[tuple[str, tuple[object, ...]]] = []
        alerts: list[str] = []
        self._database.begin()
        for record in records:
            sensor, *readings = _READING.unpack_from(record.value or b"")
            for field, reading in zip(FIELDS, readings, strict=True):
                last = self._last.get((sensor, field)) or deque[float](maxlen=MEAN_OF)
                before.setdefault((sensor, field), deque(last, maxlen=MEAN_OF))
                average = sum(last) / len(last) if last else reading
                if len(last) == MEAN_OF and reading > TIMES * average:
                    alerts.append(f"{record.position}: {field} of sensor {sensor}: {reading:.1f}")
                undo.append(self._old(sensor, field))
                last.append(reading)
                self._last[sensor, field] = last
                self._database.change(_PUT, sensor, field, len(last), sum(last) / len(last))
        self._database.commit()
        return Undo(undo, before, alerts)

    def _old(self, sensor: int, field: str) -> tuple[str, tuple[object, ...]]:
        query = "SELECT * FROM averages WHERE sensor = ? AND field = ?"
        row = self._database.row(query, sensor, field)
        return (_DROP, (sensor, field)) if row is None else (_PUT, row)

    def undo(self, records: Sequence[LogRecord], done: Undo) -> None:
        self._database.take_back(done.rows)
        assert isinstance(done.state, dict)
        self._last.update(done.state)

    def on_confirm(self, records: Sequence[LogRecord], done: Undo) -> None:
        self.alerts += done.alerts

    def output(self) -> list[tuple[object, ...]]:
        rows = self._database.rows("SELECT * FROM averages ORDER BY sensor, field")
        return [*rows, *((alert,) for alert in self.alerts)]

    def close(self) -> None:
        self._database.close()


class Intrusion:
    name = "intrusion"

    def records(self, rng: Random) -> Iterator[Ingested]:
        """Readings about a level of each sensor's own; one in 500 is far above it."""
        while True:
            sensor = rng.randrange(SENSORS)
            readings = [rng.gauss(20 + sensor, 2) for _ in FIELDS]
            if rng.random() < 0.002:
                readings[rng.randrange(len(FIELDS))] *= 5
            yield Ingested(sensor, b"%d" % sensor, _READING.pack(sensor, *readings))

    def interests(self, shards: Sequence[str], readers: int) -> list[Interest]:
        return [Interest(shards=(shard,)) for shard in shards]

    def reader(self, database: Path) -> IntrusionReader:
        return IntrusionReader(database)
