"""What a comparison of two logs reports, and the verdict that follows from it."""

from typing import Literal

import msgspec

from anabranch_spark.diff.ranges import Range
from anabranch_spark.jobs.verdict import Verdict

By = Literal["key", "position"]
RANGES_REPORTED = 100
TEXT_CHARS = 200
"""Of a key or value in a sample."""


class Positions(msgspec.Struct, frozen=True, kw_only=True):
    """Which records, by their identity, only one log has, as far as it is settled."""

    since: int
    """Below it one of the logs was trimmed."""
    shared: int
    """From `since` up to here both have the same records at the same positions."""
    only_a: int
    only_b: int
    """Records that the other log never had."""
    not_comparable_a: int
    not_comparable_b: int
    """Records that the other log may have had, and trimmed."""
    ranges_a: list[Range]
    ranges_b: list[Range]
    """Where those that only one has lie: the first of the ranges."""
    complete: bool


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One key that differs. Long texts are cut."""

    change: str
    key: str
    position_a: int | None
    value_a: str | None
    position_b: int | None
    value_b: str | None


class Keys(msgspec.Struct, frozen=True, kw_only=True):
    """How the last values of keys differ."""

    added: int
    """Keys that only `b` has."""
    removed: int
    """Keys that only `a` has."""
    changed: int
    """Keys whose last values differ."""
    not_comparable: int
    """Keys that only one log has, in records that the other may have had, and trimmed."""
    without_key_a: int
    without_key_b: int
    """Records without a key, where the logs differ."""
    without_key_equal: bool
    """They are the same on both sides, as sets with repetitions."""
    samples: list[Sample]


SAME = Keys(
    added=0,
    removed=0,
    changed=0,
    not_comparable=0,
    without_key_a=0,
    without_key_b=0,
    without_key_equal=True,
    samples=[],
)
"""Two logs without a difference."""


class DiffReport(msgspec.Struct, frozen=True, kw_only=True):
    """The difference of two logs."""

    a: str
    b: str
    by: By
    verdict: str
    """`same`, `different`, or `unknown`."""
    end_a: int = 0
    end_b: int = 0
    """Up to these positions the contents were compared."""
    positions: Positions | None = None
    keys: Keys | None = None
    output: str | None = None
    obstacles: list[str] = []
    """Why something couldn't be judged."""


EXIT = {"same": Verdict.DONE, "different": Verdict.REFUSED, "unknown": Verdict.UNKNOWN}
"""The job's exit code, by the verdict."""


def by_position(found: Positions) -> str:
    if found.only_a or found.only_b:
        return "different"
    unknown = found.not_comparable_a or found.not_comparable_b or not found.complete
    return "unknown" if unknown else "same"


def by_key(found: Keys) -> str:
    if found.added or found.removed or found.changed or not found.without_key_equal:
        return "different"
    return "unknown" if found.not_comparable else "same"


def text(content: bytes | bytearray | None) -> str | None:
    """Bytes as people can read them."""
    if content is None:
        return None
    shown = bytes(content[: TEXT_CHARS + 1]).decode("utf-8", "backslashreplace")
    return shown if len(shown) <= TEXT_CHARS else shown[:TEXT_CHARS] + "..."
