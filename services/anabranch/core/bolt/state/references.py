"""Which objects the extents of all logs refer to, and which nothing refers to any more (spec
D6).
"""

from collections.abc import Iterable, Iterator, Sequence

from anabranch.core.types import Milliseconds, ObjectId


class References:
    """Counts extents by object. One extent is the common case and costs nothing."""

    __slots__ = ("counts", "garbage", "measures", "shared", "sizes")

    def __init__(self) -> None:
        self.counts: dict[ObjectId, int] = {}
        """Only where it isn't one."""
        self.garbage: dict[ObjectId, Milliseconds] = {}
        """Unreferenced objects, and since when; in that order."""
        self.shared: dict[ObjectId, None] = {}
        """Objects whose extents a severed fork took over. They are not compacted: two logs that
        have the same records know them by the same bytes.
        """
        self.sizes: dict[ObjectId, int] = {}
        """Bytes of the extents that objects have lost: of garbage, about its size."""
        self.measures = False
        """Are those counted? Not in what members of an earlier format have applied."""

    def created(self, object: ObjectId, extents: int, at: Milliseconds, size: int = 0) -> None:
        """An object was committed, with so many extents; with none it is garbage from the start,
        of this size.
        """
        if extents == 0:
            self.garbage[object] = at
            if self.measures:
                self.sizes[object] = size
        elif extents > 1:
            self.counts[object] = extents

    def added(self, object: ObjectId) -> None:
        assert object not in self.garbage, "it may be deleted at any moment"
        self.shared[object] = None
        self.counts[object] = self.counts.get(object, 1) + 1

    def dropped(
        self, objects: Sequence[int], at: Milliseconds, lengths: Sequence[int] = ()
    ) -> None:
        """One extent fewer for each time an object is named; of these lengths."""
        counts = self.counts
        if self.measures:
            sizes = self.sizes
            for name, length in zip(objects, lengths, strict=True):
                sizes[ObjectId(name)] = sizes.get(ObjectId(name), 0) + length
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

    def since(
        self, first: Milliseconds, before: Milliseconds
    ) -> Iterator[tuple[Milliseconds, int]]:
        """When each object became garbage that did from `first` on and before a time; its size."""
        for object, since in self.garbage.items():
            if since >= before:
                return
            if since >= first:
                yield since, self.sizes.get(object, 0)

    def held(self, first: Milliseconds, before: Milliseconds) -> tuple[int, int]:
        """How many those are, and their bytes."""
        sizes = [size for _, size in self.since(first, before)]
        return len(sizes), sum(sizes)

    def forget(self, objects: Iterable[ObjectId]) -> None:
        for object in objects:
            self.garbage.pop(object, None)
            self.sizes.pop(object, None)
