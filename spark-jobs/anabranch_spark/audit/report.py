"""What an audit reports of each log, and the verdict that follows from it."""

from collections.abc import Iterable, Sequence

import msgspec

from anabranch_spark.jobs.verdict import Verdict

DAMAGE_REPORTED = 100
"""Damages of one log that a report lists; all are counted."""
RANGES_REPORTED = 100
"""Ranges that aren't summed that a report lists."""


class Damage(msgspec.Struct, frozen=True, order=True):
    """One place where a log isn't what it should be."""

    kind: str
    """`object-missing`, `object-short`, `corrupt-batch`, `lost-records`, `footer`, `coverage`,
    `set-sum`, or `answer` where the service contradicts itself.
    """
    position: int
    """The first record of the log that is concerned."""
    object: str
    """Its name in the store; empty where no object is to blame."""
    offset: int
    length: int
    reason: str


class SumReport(msgspec.Struct, frozen=True):
    """The set sum of the same batches: computed from the data, and as the service keeps it."""

    computed: int
    computed_records: int
    kept: int
    kept_records: int
    unsummed_records: int
    """Records of batches that the service has no sum of; they were verified by their CRC alone."""
    unsummed: list[tuple[int, int]]
    """Their ranges, the first of them."""

    @property
    def equal(self) -> bool:
        return (self.computed, self.computed_records) == (self.kept, self.kept_records)


class LogReport(msgspec.Struct, frozen=True, kw_only=True):
    """One log, as it was found."""

    log: str
    verdict: str
    """`sound`, `damaged`, or `unknown`."""
    start: int = 0
    end: int = 0
    """Positions from `start` up to `end`, not included, were audited."""
    records: int = 0
    """Records of the range whose bytes were read and verified."""
    bytes: int = 0
    batches: int = 0
    extents: int = 0
    objects: int = 0
    footers: int = 0
    """Objects whose footers were verified. Signed URLs give no access to footers."""
    read_again: int = 0
    """Reads that were done a second time, as the first gave other bytes than were written."""
    covered: bool = False
    """The slices covered the range exactly once."""
    sum: SumReport | None = None
    damages: int = 0
    damage: list[Damage] = []
    """The first of them, in order of position."""
    obstacles: list[str] = []
    """Why something couldn't be judged."""


class AuditReport(msgspec.Struct, frozen=True, kw_only=True):
    """All of an audit."""

    cluster: str
    verdict: str
    logs: list[LogReport]
    skipped: list[str] = []
    """Logs that weren't audited, each with the reason."""
    obstacles: list[str] = []


def log_verdict(damages: int, obstacles: Sequence[str]) -> str:
    """Damage is certain, whatever else couldn't be judged."""
    if damages:
        return "damaged"
    return "unknown" if obstacles else "sound"


def audit_verdict(verdicts: Iterable[str], obstacles: Sequence[str] = ()) -> str:
    """Of all logs: one that is damaged decides, then one that couldn't be judged."""
    found = set(verdicts)
    if "damaged" in found:
        return "damaged"
    return "unknown" if obstacles or found - {"sound"} else "sound"


EXIT = {"sound": Verdict.DONE, "damaged": Verdict.REFUSED, "unknown": Verdict.UNKNOWN}
"""The job's exit code, by the audit's verdict."""
