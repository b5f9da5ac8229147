"""Text of strangers, as it may be shown: bounded, on one line, without control characters."""

CHARS_MAX = 120


def shown(text: str, chars_max: int = CHARS_MAX) -> str:
    """What isn't printable stands as an escape; so no value moves a terminal's cursor, and none
    hides its end by writing from right to left.
    """
    cut = text[: chars_max + 1]
    plain = "".join(each if each.isprintable() else _escape(each) for each in cut)
    if len(text) <= chars_max and len(plain) <= chars_max:
        return plain
    return plain[: max(chars_max - 1, 0)] + "…"


def _escape(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")


def count(number: int, what: str) -> str:
    """`1 record`, `2,000 records`."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def percent(part: int, whole: int) -> str:
    """Never rounded up to all, nor down to nothing."""
    if whole in (0, part):
        return "100%"
    if part == 0:
        return "0%"
    share = 100 * part / whole
    if share < 0.01:
        return "less than 0.01%"
    if share > 99.99:
        return "more than 99.99%"
    return f"{share:.2f}".rstrip("0").rstrip(".") + "%"
