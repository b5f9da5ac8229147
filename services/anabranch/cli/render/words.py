"""How sizes, counts, durations and strangers' text are written."""

import sys
from datetime import UTC, datetime


def printable(text: str) -> str:
    """Nothing in it moves the cursor or colours the screen: names and values are strangers'."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shown(value: bytes | None) -> str:
    """A key or value on one line; bytes that aren't text are escaped."""
    if value is None:
        return "-"
    return printable(value.decode("utf-8", errors="backslashreplace"))


def size(count: float) -> str:
    """`1.5 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def number(count: float) -> str:
    """A count or a rate, with separators only where a person looks at a terminal.

    Never for a position or an id, which is typed back as it was printed.
    """
    whole = count if isinstance(count, int) else round(count)
    return f"{whole:,}" if sys.stdout.isatty() else str(whole)


def counted(count: int, what: str) -> str:
    """`1 record`, `2000 records`; on a terminal `2,000 records`."""
    return f"{number(count)} {what}" + "s" * (count != 1)


def percent(part: int, whole: int) -> str:
    """`-` for a share of nothing."""
    return f"{part / whole:.1%}" if whole else "-"


def share_of_all(part: int, rest: int) -> str:
    """A count, and its share of itself and the rest: `12 (3.0%)`."""
    return f"{number(part)} ({percent(part, part + rest)})"


def instant(at_ms: int) -> str:
    """`2026-01-31 12:00:00+00:00`."""
    return datetime.fromtimestamp(at_ms / 1_000, UTC).isoformat(" ", "seconds")


def per_second(count: int, took_s: float) -> str:
    return number(max(0, count) / took_s) if took_s > 0 else "-"


def duration(seconds: float) -> str:
    """Two digits that matter: `340 us`, `2.1 ms`, `1.4 s`, `3 m 20 s`, `2 h 5 m`, `4 d 2 h`."""
    # What would be rounded to a whole unit above is written in that one.
    if seconds < 999.5e-6:
        return f"{seconds * 1e6:.0f} us"
    if seconds < 0.9995:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 59.95:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    for large, small, unit, part in (
        (60, 1, "m", "s"),
        (3_600, 60, "h", "m"),
        (86_400, 3_600, "d", "h"),
    ):
        if whole < large * (24 if unit == "h" else 60) or unit == "d":
            rest = whole % large // small
            return f"{whole // large} {unit}" + (f" {rest} {part}" if rest else "")
    raise AssertionError("days have no end")
