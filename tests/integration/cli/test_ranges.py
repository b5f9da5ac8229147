"""The ranges that refusals name are exactly what is granted, at both of their edges."""

import pytest
from tests.commands import Command

from anabranch.cli.failure import Exit

START, TAIL = 2, 5


@pytest.fixture
def trimmed(anabranch: Command, log: str) -> str:
    """A log of positions 2 to 4."""
    anabranch("log", "create", log)
    anabranch("append", log, *map(str, range(TAIL)))
    anabranch("trim", log, "--before", str(START))
    return log


@pytest.mark.parametrize(
    ("words", "first", "last"),
    [
        (("read", "{log}", "--from"), START, TAIL),
        (("trim", "{log}", "--before"), None, TAIL),
        (("cursor", "set", "{log}", "me"), 0, TAIL),
        (("fork", "{log}", "--at"), START + 1, TAIL),
    ],
)
def test_what_is_refused_lies_just_outside_of_the_range_that_is_named(
    anabranch: Command, trimmed: str, words: tuple[str, ...], first: int | None, last: int
) -> None:
    command = tuple(word.format(log=trimmed) for word in words)
    named = START if first is None else first
    for refused in (last + 1, *([] if not first else [first - 1])):
        said = anabranch(*command, str(refused), "-o", "json", code=Exit.REFUSED).error
        assert said["code"] == "out-of-range"
        assert f"is from {named} to {last}, both included: {refused} isn't" in said["message"]
        assert (said["facts"]["start"], said["facts"]["last"]) == (named, last)
    for granted in (named, last):
        anabranch(*command, str(granted))


def test_an_empty_log_has_no_position_to_fork_at(anabranch: Command, log: str) -> None:
    anabranch("log", "create", log)
    said = anabranch("fork", log, "--at", "1", "-o", "json", code=Exit.REFUSED).error
    assert said["message"].startswith(f"{log} holds no records, so 1 can't be a position for --at")
