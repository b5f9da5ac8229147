"""Whether this operator may act: it leads, and it has seen every object that there is."""

from collections.abc import Iterable

FIRST_EPOCH = 1
"""The epoch of a leader that has created the Lease itself."""


class Leadership:
    """Changed by elections and by the first list of each kind."""

    def __init__(self, kinds: Iterable[str]) -> None:
        """`kinds` must all be listed before anything is planned."""
        self.epoch: int | None = None
        self._unlisted = dict.fromkeys(kinds)

    @property
    def leads(self) -> bool:
        return self.epoch is not None

    @property
    def synced(self) -> bool:
        """Has every kind been listed?"""
        return not self._unlisted

    @property
    def acts(self) -> bool:
        return self.leads and self.synced

    def list(self, kind: str) -> None:
        self._unlisted.pop(kind, None)

    def elect(self, epoch: int) -> None:
        assert epoch >= FIRST_EPOCH, epoch
        self.epoch = epoch

    def depose(self) -> None:
        self.epoch = None
