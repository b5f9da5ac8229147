"""Whose requests to the object store they were: each log's and each fork's part of them.

An object holds many logs, and each bears its PUT by its bytes there. A GET brings bytes of one or
several logs, and is borne by those they were written to, whoever reads them through which fork.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from anabranch.core.types import LogId

LOGS_MAX = 1_000
"""Past it, what the log that was idle longest has used is counted among the others."""


@dataclass(slots=True)
class Share:
    """Requests, in parts of one, and bytes."""

    puts: float = 0.0
    gets: float = 0.0
    put_bytes: int = 0
    got_bytes: int = 0

    def add(self, other: "Share") -> None:
        self.puts += other.puts
        self.gets += other.gets
        self.put_bytes += other.put_bytes
        self.got_bytes += other.got_bytes


class Usage:
    """Since the broker's life began."""

    def __init__(self, logs_max: int = LOGS_MAX) -> None:
        assert logs_max > 0
        self.others = Share()
        """Of logs that are no longer counted by themselves."""
        self._logs_max = logs_max
        self._shares: OrderedDict[LogId, Share] = OrderedDict()

    def wrote(self, parts: Sequence[tuple[LogId, int]]) -> None:
        """One object was put, with so many bytes of each of these logs."""
        total = sum(size for _, size in parts)
        assert total > 0 or not parts, "an object has a byte at least"
        for log, size in parts:
            self._charge(log, Share(puts=size / total, put_bytes=size))

    def read(self, parts: Sequence[tuple[LogId, int]]) -> None:
        """One range was got, with so many bytes of each of these logs."""
        total = sum(size for _, size in parts)
        assert total > 0 or not parts, "a range has a byte at least"
        for log, size in parts:
            self._charge(log, Share(gets=size / total, got_bytes=size))

    def by_log(self) -> Iterable[tuple[LogId, Share]]:
        """Who was charged last comes last."""
        return self._shares.items()

    def _charge(self, log: LogId, share: Share) -> None:
        shares = self._shares
        if log in shares:
            shares.move_to_end(log)
        else:
            shares[log] = Share()
            if len(shares) > self._logs_max:
                _, idle = shares.popitem(last=False)
                self.others.add(idle)
        assert len(shares) <= self._logs_max
        shares[log].add(share)
