"""Which of a producer's sequences members of the view must still know (decision 57).

Each append names the lowest of them, and members forget what lies below. So their tables of
duplicates are as large as what clients have in flight.
"""

from collections import Counter
from heapq import heappop, heappush


class Outstanding:
    """Of one producer identity."""

    __slots__ = ("_heap", "_held")

    def __init__(self) -> None:
        self._held: Counter[int] = Counter()
        self._heap: list[int] = []

    def hold(self, sequence: int) -> None:
        """From now on it must be known; several may hold it."""
        if not self._held[sequence]:
            heappush(self._heap, sequence)
        self._held[sequence] += 1

    def release(self, sequence: int) -> None:
        """One of those who held it needs it no longer."""
        assert self._held[sequence] > 0, "what is released was held"
        self._held[sequence] -= 1
        if not self._held[sequence]:
            del self._held[sequence]

    @property
    def lowest(self) -> int:
        """What an append names that is held itself."""
        heap, held = self._heap, self._held
        while heap[0] not in held:
            heappop(heap)
        return heap[0]
