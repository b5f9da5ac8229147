"""How much a micro-batch takes of what a log has."""

from collections.abc import Iterable

import msgspec

from anabranch import PlannedSlice


class Admission(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of a micro-batch."""

    records_max: int | None = None
    bytes_max: int | None = None
    records_min: int = 0
    delay: float = 0.0
    """Seconds after which fewer than `records_min` are taken."""

    def end(self, *, stands: int, settled: int, target: int | None, waited: float) -> int:
        """The position up to which a micro-batch from `stands` on may read, bytes not counted:
        never past what is settled, nor past the target. It is `stands` if there is nothing to read
        yet.

        `waited`: seconds since the last micro-batch began, or the query did.
        """
        last = settled if target is None else min(settled, target)
        if last <= stands:
            return stands
        # Nothing more comes below a target that is settled, so there is nothing to wait for.
        final = target is not None and target <= settled
        if last - stands < self.records_min and waited < self.delay and not final:
            return stands
        return last if self.records_max is None else min(last, stands + self.records_max)


def within_bytes(slices: Iterable[PlannedSlice], bytes_max: int) -> tuple[list[PlannedSlice], bool]:
    """The first slices that have no more stored bytes than that, but one at least, and whether
    those are all there are. No more slices are looked at than needed.
    """
    taken: list[PlannedSlice] = []
    size = 0
    for each in slices:
        size += each.length
        if taken and size > bytes_max:
            return taken, False
        taken.append(each)
    return taken, True
