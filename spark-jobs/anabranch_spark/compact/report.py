"""What a compaction reports of each log, and the verdict that follows from it."""

from collections.abc import Iterable

import msgspec

from anabranch_spark.jobs.verdict import Verdict

REASONS_REPORTED = 20
"""Reasons of each kind that a report lists of one log; all are counted."""


class LogReport(msgspec.Struct, kw_only=True):
    """One log, as far as it was compacted."""

    log: str
    verdict: str = "done"
    """`done`, `damaged`, or `unknown`."""
    waves: int = 0
    copies: int = 0
    """Objects that took the place of extents."""
    extents: int = 0
    """Extents that they took the place of."""
    fewer: int = 0
    """So many extents fewer the log has."""
    bytes: int = 0
    """Of these objects."""
    in_vain: int = 0
    """Objects that took the place of nothing: most because the log changed meanwhile."""
    reasons: list[str] = []
    """Why, the first of them."""
    sum: int = 0
    """The set sum of the log's records when the job began, from `start` to `end`."""
    start: int = 0
    end: int = 0
    damages: int = 0
    damage: list[str] = []
    """Extents that aren't what was committed: they were left as they are."""
    obstacles: list[str] = []
    """Why the job couldn't go on."""

    def add_reason(self, kind: list[str], reason: str) -> None:
        if len(kind) < REASONS_REPORTED and reason not in kind:
            kind.append(reason)

    def conclude(self) -> None:
        """Damage is certain, whatever else stood in the way."""
        if self.damages:
            self.verdict = "damaged"
        elif self.obstacles:
            self.verdict = "unknown"


class CompactReport(msgspec.Struct, frozen=True, kw_only=True):
    """All of a job."""

    cluster: str
    verdict: str
    logs: list[LogReport]
    skipped: list[str] = []
    """Logs that the job left out, each with the reason."""
    obstacles: list[str] = []


def verdict_of(verdicts: Iterable[str], obstacles: list[str]) -> str:
    """Of all logs: one that is damaged decides, then one that couldn't be compacted."""
    found = set(verdicts)
    if "damaged" in found:
        return "damaged"
    return "unknown" if obstacles or found - {"done"} else "done"


EXIT = {"done": Verdict.DONE, "damaged": Verdict.REFUSED, "unknown": Verdict.UNKNOWN}
"""The job's exit code, by its verdict."""
