"""What msgspec says of a value's type and size, in words for people who write YAML."""

import re
from collections.abc import Callable

_NAMES = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "keys with values",
    "null": "nothing",
}
_SIZES = {"array": "entries", "str": "characters", "object": "keys"}
_MOSTLY = {"<=": "at most", ">=": "at least", "<": "less than", ">": "more than"}
DURATION = "'^[0-9]{1,9}(ms|s|m|h|d)$'"
"""The pattern that lengths of time are held to, as msgspec shows it."""


def in_words(said: str) -> str:
    """The same as a sentence; what isn't known stays as it is."""
    for pattern, sentence in _SENTENCES:
        found = pattern.fullmatch(said)
        if found is not None:
            return sentence(found)
    return said


def _types(found: re.Match[str]) -> str:
    wanted = [each for each in found[1].split(" | ") if each != "null"]
    return f"it must be {' or '.join(map(_named, wanted))}, and is {_named(found[2])}"


def _named(kind: str) -> str:
    return _NAMES.get(kind, kind)


def _size(found: re.Match[str]) -> str:
    return f"it must have {_MOSTLY[found[2]]} {found[3]} {_SIZES.get(found[1], found[1])}"


_SENTENCES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"Expected `([^`]+)`, got `([^`]+)`"), _types),
    (re.compile(r"Expected `(\w+)` of length (<=|>=|<|>) (\S+)"), _size),
    (
        re.compile(r"Expected `\w+` (<=|>=|<|>) (\S+)"),
        lambda found: f"it must be {_MOSTLY[found[1]]} {found[2]}",
    ),
    (
        re.compile(rf"Expected `str` matching regex {re.escape(DURATION)}"),
        lambda _: "it must be a length of time such as 90s, 15m, 6h or 2d",
    ),
    (re.compile(r"Invalid enum value (.+)"), lambda found: f"it can't be {found[1]}"),
)
