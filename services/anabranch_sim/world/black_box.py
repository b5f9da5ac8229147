"""A log of another system that loses answers, repeats records and delivers some late."""

from collections.abc import Callable, Sequence
from random import Random

from anabranch.core.errors import BlackBoxFailed

_WHERE = "a simulated black box"


class SimBlackBox:
    """`ports.BlackBox`. Outlives the processes that use it. `faults` is the chance that an append
    goes wrong; other calls, many of which make a start, fail less often.
    """

    where = _WHERE

    def __init__(self, rng: Random) -> None:
        self.faults = 0.0
        self.on_held_up: Callable[[], None] = lambda: None
        """Records are sent, and arrive at some later time."""
        self.records: list[tuple[int, bytes]] = []
        self._rng = rng
        self._begin = 0
        self._end = 0
        self._late: list[bytes] = []
        """Sent, and neither refused nor there yet."""

    def bounds(self) -> tuple[int, int]:
        self._may_fail()
        return self._begin, self._end

    @property
    def begin(self) -> int:
        return self._begin

    def look(self) -> tuple[int, int]:
        return self.bounds()

    def append(self, records: Sequence[bytes]) -> list[int]:
        assert records, "nothing is never appended"
        self._deliver_late()
        if not self._goes_wrong():
            return [self._add(record) for record in records]
        match self._rng.randrange(5):
            case 0:  # nothing arrives
                pass
            case 1:  # all arrives, and the answer is lost
                for record in records:
                    self._add(record)
            case 2:  # some arrives
                for record in records[: self._rng.randint(0, len(records))]:
                    self._add(record)
            case 3:  # all arrives, but much later
                self._late.extend(records)
                self.on_held_up()
            case _:  # all arrives twice, and the second time is answered
                for record in records:
                    self._add(record)
                return [self._add(record) for record in records]
        raise BlackBoxFailed(_WHERE, "no answer came")

    def read(self, start: int) -> list[tuple[int, bytes]]:
        self._may_fail()
        if start < self._begin:
            raise BlackBoxFailed(_WHERE, f"what lies at {start} was deleted")
        assert start < self._end, "only what is there is asked for"
        first = next(nth for nth, (position, _) in enumerate(self.records) if position >= start)
        return self.records[first : first + self._rng.randint(1, 20)]

    def trim(self, below: int) -> None:
        self._may_fail()
        assert below <= self._end
        self._begin = max(self._begin, below)
        self.records = [each for each in self.records if each[0] >= self._begin]

    def close(self) -> None:
        """Nothing is open."""

    def _add(self, record: bytes) -> int:
        """Positions are left out now and then, as Kafka does for transactions' markers."""
        if self.faults and self._rng.random() < 0.02:
            self._end += 1
        position = self._end
        self.records.append((position, record))
        self._end += 1
        return position

    def _deliver_late(self) -> None:
        if self._late and self._rng.random() < 0.5:
            late, self._late = self._late, []
            for record in late:
                self._add(record)

    def _may_fail(self) -> None:
        if self._rng.random() < self.faults / 20:
            raise BlackBoxFailed(_WHERE, "it doesn't answer")

    def _goes_wrong(self) -> bool:
        return self.faults > 0 and self._rng.random() < self.faults
