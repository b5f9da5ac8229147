"""Is what we were told to watch really shown to us? Who is blind must end, and be started anew.

Watches of all kinds come by the same connections, from the same server, through the same code. The
Lease is renewed every two seconds, by us or by another, and read by everybody: so every operator
soon knows of changes that its own watch must show. A watch that fails alone is found by comparing
what it told with a list, now and then.
"""

from collections.abc import Mapping

from msgspec import Struct

from anabranch_operator.api.anabranch_names import Nanoseconds
from anabranch_operator.plan.engine.objects import Ref

SECOND: Nanoseconds = 1_000_000_000


class Canary:
    """One object whose versions are learned directly, and must be shown by a watch as well."""

    def __init__(self, patience_s: float = 60, gap_s: float = 10) -> None:
        """`gap_s`: after so long without an answer the watch has the whole time again, for it was
        cut off as we were.
        """
        self._patience = round(patience_s * SECOND)
        self._gap = round(gap_s * SECOND)
        self._shown = 0
        self._latest = 0
        self._learned_at: Nanoseconds | None = None
        self._behind_since: Nanoseconds | None = None

    def learned(self, version: int, now: Nanoseconds) -> None:
        cut_off = self._learned_at is not None and now - self._learned_at > self._gap
        self._learned_at = now
        self._latest = max(self._latest, version)
        if self._latest <= self._shown:
            self._behind_since = None
        elif self._behind_since is None or cut_off:
            self._behind_since = now

    def shown(self, version: int, now: Nanoseconds) -> None:
        """Whatever comes shows that the watch lives; it may still be a little behind."""
        if version > self._shown:
            self._shown = version
            self._behind_since = None if self._latest <= version else now

    def behind_s(self, now: Nanoseconds) -> float:
        """Since when something that was learned wasn't shown."""
        return 0.0 if self._behind_since is None else max(0, now - self._behind_since) / SECOND

    @property
    def blind(self) -> bool:
        """Only by what was learned: while the API server is away nobody sees anything."""
        if self._behind_since is None or self._learned_at is None:
            return False
        return self._learned_at - self._behind_since >= self._patience


class Sighting(Struct, frozen=True):
    """Which object of a name it is, and how new."""

    uid: str
    version: int


class Roll:
    """What one watch has told, to be compared with lists."""

    def __init__(self, patience_s: float = 120) -> None:
        self._patience = round(patience_s * SECOND)
        self._told: dict[Ref, Sighting] = {}
        self._overheard: dict[str, tuple[Ref, int]] = {}
        """What nobody knows but by answers to our writes: by UID, with the version."""
        self._owed: dict[Ref, tuple[Sighting, Nanoseconds]] = {}
        """What a list has shown and the watch hasn't, and since when."""
        self.listed = False
        """Has the watch told of everything that a list had?"""

    @property
    def owes(self) -> bool:
        return bool(self._owed)

    def tell(self, ref: Ref, seen: Sighting) -> bool:
        """What the watch shows; was this object told of before as it is?"""
        known = self._told.get(ref)
        if known is None or known.version <= seen.version:
            self._told[ref] = seen
        self._overheard.pop(seen.uid, None)
        owed = self._owed.get(ref)
        if owed is not None and owed[0].version <= seen.version:
            del self._owed[ref]
        return known == seen

    def overhear(self, ref: Ref, seen: Sighting) -> None:
        """The answer to a write shows it: its end may come before the watch has ever shown it."""
        known = self._told.get(ref)
        if known is None or known.uid != seen.uid:
            self._overheard[seen.uid] = ref, seen.version

    def forget(self, ref: Ref, uid: str) -> None:
        """The watch has shown its end."""
        self._overheard.pop(uid, None)
        known = self._told.get(ref)
        if known is not None and known.uid == uid:
            del self._told[ref]
        owed = self._owed.get(ref)
        if owed is not None and owed[0].uid == uid:
            del self._owed[ref]

    def compare(
        self, found: Mapping[Ref, Sighting], version: int, now: Nanoseconds
    ) -> tuple[tuple[Ref, str], ...]:
        """What is no more, though the watch hasn't said so. `version`: that of the list; what was
        told and is newer than it may rightly be missing.
        """
        before, self._owed = self._owed, {}
        for ref, seen in found.items():
            told = self._told.get(ref)
            if told is None or told.version < seen.version:
                owed = before.get(ref)
                self._owed[ref] = (seen, now) if owed is None else owed
        known = [(ref, told.uid, told.version) for ref, told in self._told.items()]
        known += [(ref, uid, seen) for uid, (ref, seen) in self._overheard.items()]
        gone = tuple(
            (ref, uid)
            for ref, uid, seen in known
            if seen <= version and (ref not in found or found[ref].uid != uid)
        )
        for ref, uid in gone:
            self.forget(ref, uid)
        self.listed = self.listed or not self._owed
        return gone

    def blind(self, now: Nanoseconds) -> bool:
        """Right after a comparison: is something missing that was missing long before?"""
        return any(now - since >= self._patience for _, since in self._owed.values())
