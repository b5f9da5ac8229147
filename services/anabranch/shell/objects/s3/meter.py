"""What the store is asked, and what that costs: in all, and of one log's share."""

from enum import StrEnum

from anabranch.core.usage import Share
from anabranch.shell.objects.s3.settings import S3Settings

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


class Meter:
    def __init__(self, settings: S3Settings) -> None:
        self.counters = S3Counters()
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

    def cost(self, share: Share) -> float:
        """What a log's part of the requests costs."""
        requests = share.puts * self._put_price + share.gets * self._get_price
        return requests + share.got_bytes * self._byte_price
