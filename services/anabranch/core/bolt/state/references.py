"""Which objects the extents of all logs refer to, and which nothing refers to any more (spec
D6).
"""

from collections.abc import Iterable

from anabranch.core.types import Milliseconds, ObjectId


class References:
    """Counts extents by object. One extent is the common case and costs nothing."""

    __slots__ = ("counts", "garbage", "shared")

    def __init__(self) -> None:
        self.counts: dict[ObjectId, int] = {}
        """Only where it isn't one."""
        self.garbage: dict[ObjectId, Milliseconds] = {}
        """Unreferenced objects, and since when; in that order."""
        self.shared: dict[ObjectId, None] = {}
        """Objects whose extents a severed fork took over. They are not compacted: two logs that
        have the same records know them by the same bytes.
        """

    def created(self, object: ObjectId, extents: int, at: Milliseconds) -> None:
        """An object was committed, with so many extents; with none it is garbage from the start."""
        if extents == 0:
            self.garbage[object] = at
        elif extents > 1:
            self.counts[object] = extents

    def added(self, object: ObjectId) -> None:
        assert object not in self.garbage, "it may be deleted at any moment"
        self.shared[object] = None
        self.counts[object] = self.counts.get(object, 1) + 1

    def dropped(self, objects: Iterable[int], at: Milliseconds) -> None:
        """One extent fewer for each time an object is named."""
        counts = self.counts
        for name in objects:
            object = ObjectId(name)
            left = counts.pop(object, 1) - 1
            assert left >= 0, "more extents went than there were"
            if left == 0:
                self.garbage[object] = at
                self.shared.pop(object, None)
            elif left > 1:
                counts[object] = left

    def deletable(self, before: Milliseconds, count_max: int) -> list[ObjectId]:
        """Objects that became garbage before a time: no read that began earlier still needs
        them.
        """
        assert count_max > 0, "nothing would ever be deleted"
        found: list[ObjectId] = []
        for object, since in self.garbage.items():
            if since >= before or len(found) == count_max:
                break
            found.append(object)
        return found

    def forget(self, objects: Iterable[ObjectId]) -> None:
        for object in objects:
            self.garbage.pop(object, None)
