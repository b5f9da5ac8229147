"""What the store is asked, and what that costs: in all, and by log where the caller can tell.

A log here is a root or a fork. An object holds many logs: whoever writes one tells how many bytes
are each one's, and each bears that share of the request; whoever reads tells whose bytes it wants.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from anabranch.core.types import LogId
from anabranch.shell.s3.settings import S3Settings

LOGS_MAX = 10_000
"""Past it, what the log that was idle longest has cost is counted among the others."""
_GIB = 1 << 30


class Kind(StrEnum):
    PUT = "put"
    PART = "part"
    """A request of an upload in parts: its beginning, a part, its end."""
    GET = "get"
    HEAD = "head"
    LIST = "list"
    DELETE = "delete"


class S3Counters:
    """Requests by kind, each attempt one, and bytes of what came to an end."""

    __slots__ = (
        "bytes_got",
        "bytes_put",
        "cost",
        "deletes",
        "failures",
        "gets",
        "heads",
        "lists",
        "parts",
        "puts",
        "refusals",
        "retries",
        "throttled",
    )

    def __init__(self) -> None:
        self.bytes_got = 0
        self.bytes_put = 0
        self.cost = 0.0
        """In the currency of the prices."""
        self.deletes = 0
        self.failures = 0
        """Calls that were given up."""
        self.gets = 0
        self.heads = 0
        self.lists = 0
        self.parts = 0
        self.puts = 0
        self.refusals = 0
        """Attempts that the store, or the way to it, failed."""
        self.retries = 0
        self.throttled = 0
        """Attempts that the store was too busy for."""


@dataclass(slots=True)
class Share:
    """One log's part of the requests, and its bytes."""

    puts: float = 0.0
    gets: float = 0.0
    bytes_put: int = 0
    bytes_got: int = 0

    def add(self, other: "Share") -> None:
        self.puts += other.puts
        self.gets += other.gets
        self.bytes_put += other.bytes_put
        self.bytes_got += other.bytes_got


class Meter:
    def __init__(self, settings: S3Settings) -> None:
        self.counters = S3Counters()
        self.others = Share()
        """Of logs that are no longer counted by themselves."""
        self._shares: OrderedDict[LogId, Share] = OrderedDict()
        self._put_price = settings.price_put / 1_000
        self._get_price = settings.price_get / 1_000
        self._byte_price = settings.price_out / _GIB

    def asked(self, kind: Kind) -> None:
        """A request was sent: it costs whatever becomes of it."""
        counters = self.counters
        match kind:
            case Kind.PUT:
                counters.puts += 1
                counters.cost += self._put_price
            case Kind.PART:
                counters.parts += 1
                counters.cost += self._put_price
            case Kind.LIST:
                counters.lists += 1
                counters.cost += self._put_price
            case Kind.GET:
                counters.gets += 1
                counters.cost += self._get_price
            case Kind.HEAD:
                counters.heads += 1
                counters.cost += self._get_price
            case Kind.DELETE:
                counters.deletes += 1

    def put(self, size: int) -> None:
        self.counters.bytes_put += size

    def got(self, size: int) -> None:
        self.counters.bytes_got += size
        self.counters.cost += size * self._byte_price

    def wrote(self, shares: Sequence[tuple[LogId, int]]) -> None:
        """One object was put, with so many bytes of each of these logs."""
        total = sum(size for _, size in shares)
        for log, size in shares:
            self._charge(log, Share(puts=size / total, bytes_put=size))

    def read(self, shares: Sequence[tuple[LogId, int]]) -> None:
        """One range was got, with so many bytes for each of these logs."""
        total = sum(size for _, size in shares)
        for log, size in shares:
            self._charge(log, Share(gets=size / total, bytes_got=size))

    def by_log(self) -> Iterable[tuple[LogId, Share]]:
        """Who was charged last comes last."""
        return self._shares.items()

    def cost(self, share: Share) -> float:
        requests = share.puts * self._put_price + share.gets * self._get_price
        return requests + share.bytes_got * self._byte_price

    def _charge(self, log: LogId, share: Share) -> None:
        shares = self._shares
        if log in shares:
            shares.move_to_end(log)
        else:
            shares[log] = Share()
            if len(shares) > LOGS_MAX:
                _, oldest = shares.popitem(last=False)
                self.others.add(oldest)
        shares[log].add(share)
