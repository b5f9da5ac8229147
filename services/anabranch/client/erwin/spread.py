"""Over which shards the data of mode st is spread: each batch goes where least is on its way."""

from collections import Counter

from anabranch.client.erwin.directory import Whereabouts


class Spread:
    """Of one client."""

    def __init__(self, whereabouts: Whereabouts) -> None:
        self._whereabouts = whereabouts
        self._bytes: Counter[str] = Counter()
        """On their way to each shard."""
        self._last = ""

    def choose(self, identity: int | None) -> str:
        """Empty if no shard takes records. `identity`: of a request, which another program may
        repeat: it goes to the same shard as long as the same shards take records.
        """
        taking = self._whereabouts.taking()
        if not taking:
            return ""
        if identity is not None:
            return taking[identity % len(taking)]
        # By turns among those that have as little: those after the last one come first.
        turned = sorted(taking, key=lambda shard: (shard <= self._last, shard))
        self._last = min(turned, key=lambda shard: self._bytes[shard])
        return self._last

    def began(self, shard: str, size: int) -> None:
        """A batch is on its way to this shard."""
        self._bytes[shard] += size

    def ended(self, shard: str, size: int) -> None:
        """It isn't any more."""
        self._bytes[shard] -= size
        assert self._bytes[shard] >= 0, "what has ended was begun"
