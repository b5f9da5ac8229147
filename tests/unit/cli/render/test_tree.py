"""Trees of forks are drawn a line a log, however deep they are."""

from msgspec.structs import replace
from tests.unit.described import described as any_log

from anabranch.cli.render.tree import LEVELS_DRAWN, by_parent, drawn, ordered
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.types import Kind, LogId

DEPTH = 1_000


def described(id: int, name: str, parent: str | None) -> Description:
    kind = Kind.CONTINUOUS if parent else Kind.ROOT
    return any_log(LogId(id), name, kind=kind, root="r", parent=parent, tail=1, settled=1)


def lines(logs: list[Description]) -> list[str]:
    forks = by_parent(logs)
    return [line.plain.split("  ")[0] for line in drawn(forks[None][0], forks, 0)]


def test_guides_say_whose_fork_each_is() -> None:
    logs = [
        described(1, "r", None),
        described(2, "a", "r"),
        described(3, "b", "a"),
        described(4, "c", "r"),
    ]
    forks = by_parent(logs)
    assert [
        line.plain[: line.plain.index(name)]
        for line, name in zip(drawn(logs[0], forks, 0), "rabc", strict=True)
    ] == ["", "├── ", "│   └── ", "└── "]


def test_a_log_that_is_held_up_says_so_below_its_name() -> None:
    held = replace(described(1, "r", None), undecided="r--f")
    forks = by_parent([held])
    assert [line.plain for line in drawn(held, forks, 0)][1] == "reads below 1: r--f is undecided"


def test_a_thousand_levels_are_drawn_in_lines_that_fit() -> None:
    logs = [described(1, "n0", None)]
    logs += [described(n + 1, f"n{n}", f"n{n - 1}") for n in range(1, DEPTH)]
    shown = lines(logs)
    assert len(shown) == DEPTH
    assert max(map(len, shown)) < LEVELS_DRAWN * 4 + 40
    drawn_whole = list(drawn(logs[0], by_parent(logs), 0))
    assert drawn_whole[-1].plain.startswith(f"+{DEPTH - 2 - LEVELS_DRAWN} ")
    assert f"└── n{DEPTH - 1}  " in drawn_whole[-1].plain


def test_a_parent_comes_before_its_forks_and_an_orphan_stands_alone() -> None:
    logs = [described(3, "x", "gone"), described(2, "a", "r"), described(1, "r", None)]
    forks = by_parent(logs)
    assert [log.name for log in forks[None]] == ["r", "x"]
    assert [(depth, log.name) for depth, _, _, log in ordered(forks[None][0], forks)] == [
        (0, "r"),
        (1, "a"),
    ]
