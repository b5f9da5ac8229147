"""High-frequency trading: how one stock's price follows another's, by online regression over the
last prices of both in the log's order; the weights are what a strategy would trade on.
"""

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from examples.belfast.application import Ingested, Interest, Undo
from examples.database import Database

from anabranch.client.session.records import LogRecord
from anabranch.core.belfast.protocol.messages import Where

PAIRS = 8
ALPHA = 0.9
"""How much of what was learned before counts, beside each new pair of prices."""

_PRICE = struct.Struct("<Id")
_SCHEMA = """
CREATE TABLE weights (
    position INTEGER, pair INTEGER, slope REAL, intercept REAL, PRIMARY KEY (position, pair)
);
"""


class Model(NamedTuple):
    """Weighted sums of both prices, their products, and the last price of each."""

    weight: float = 0.0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    xy: float = 0.0
    last: tuple[float | None, float | None] = (None, None)

    def learned(self, side: int, price: float) -> "Model":
        last = (price, self.last[1]) if side == 0 else (self.last[0], price)
        x, y = last
        if x is None or y is None:
            return self._replace(last=last)
        return Model(
            ALPHA * self.weight + 1,
            ALPHA * self.x + x,
            ALPHA * self.y + y,
            ALPHA * self.xx + x * x,
            ALPHA * self.xy + x * y,
            last,
        )

    @property
    def weights(self) -> tuple[float, float] | None:
        """Slope and intercept, where both can be told."""
        if self.weight <= 1:
            return None
        spread = self.xx - self.x * self.x / self.weight
        if spread <= 1e-9:
            return None
        slope = (self.xy - self.x * self.y / self.weight) / spread
        return slope, (self.y - slope * self.x) / self.weight


class TradingReader:
    def __init__(self, database: Path) -> None:
        self._database = Database(database, _SCHEMA)
        self._models: dict[int, Model] = {}

    def do(self, records: Sequence[LogRecord]) -> Undo:
        """The weights of a batch are stored once for each pair, at its last record."""
        before: dict[int, Model] = {}
        touched: dict[int, int] = {}
        for record in records:
            stock, price = _PRICE.unpack_from(record.value or b"")
            pair, side = divmod(stock, 2)
            model = self._models.get(pair, Model())
            before.setdefault(pair, model)
            self._models[pair] = model.learned(side, price)
            touched[pair] = record.position
        undo: list[tuple[str, tuple[object, ...]]] = []
        self._database.begin()
        for pair, position in touched.items():
            weights = self._models[pair].weights
            if weights is not None:
                self._database.change(
                    "INSERT INTO weights VALUES (?, ?, ?, ?)", position, pair, *weights
                )
                undo.append(
                    ("DELETE FROM weights WHERE position = ? AND pair = ?", (position, pair))
                )
        self._database.commit()
        return Undo(undo, before, [])

    def undo(self, records: Sequence[LogRecord], done: Undo) -> None:
        self._database.take_back(done.rows)
        assert isinstance(done.state, dict)
        self._models.update(done.state)

    def on_confirm(self, records: Sequence[LogRecord], done: Undo) -> None:
        """A strategy would be told here; there is none."""

    def output(self) -> list[tuple[object, ...]]:
        """The newest weights: those before depend on how records came together in batches."""
        newest = self._database.rows(
            "SELECT pair, position, slope, intercept FROM weights WHERE position = "
            "(SELECT max(position) FROM weights AS others WHERE others.pair = weights.pair) "
            "ORDER BY pair"
        )
        return [*newest, *sorted(self._models.items())]

    def close(self) -> None:
        self._database.close()


class Trading:
    name = "trading"

    def records(self, rng: Random) -> Iterator[Ingested]:
        """Prices that walk by chance, the second of each pair behind the first."""
        prices = [100.0] * (2 * PAIRS)
        while True:
            stock = rng.randrange(2 * PAIRS)
            if stock % 2:
                prices[stock] = 0.5 * prices[stock - 1] + 50 + rng.gauss(0, 0.2)
            else:
                prices[stock] = max(1.0, prices[stock] + rng.gauss(0, 0.5))
            yield Ingested(stock, b"%d" % (stock // 2), _PRICE.pack(stock, prices[stock]))

    def interests(self, shards: Sequence[str], readers: int) -> list[Interest]:
        return [
            Interest(where=Where(key_modulus=readers, key_remainder=number))
            for number in range(readers)
        ]

    def reader(self, database: Path) -> TradingReader:
        return TradingReader(database)
