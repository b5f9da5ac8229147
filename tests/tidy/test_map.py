"""ARCHITECTURE.md names every room and no other; every module says what it is."""

import re
from pathlib import Path

from tests.tidy.map import first_sentence, sources

TOKEN = re.compile(r"`([\w./-]+/|[\w./-]+\.py)`")
ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
MODULES_MAX = 17
"""About fifteen modules in a folder, so that a newcomer can take in a room at one look."""


def named(table: str, root: Path) -> tuple[set[Path], set[str]]:
    """Rooms and files that the table names, and names for which there is nothing."""
    found: set[Path] = set()
    missing: set[str] = set()
    for _, cell in ROW.findall(table):
        for name in TOKEN.findall(cell):
            homes = (root / "services" / "anabranch" / name, root / name)
            there = [home for home in homes if home.exists()]
            if there:
                found.add(there[0])
            else:
                missing.add(name)
    return found, missing


def rooms(root: Path) -> dict[Path, list[Path]]:
    """Packages with modules of their own, and these."""
    found: dict[Path, list[Path]] = {}
    for path in sources(root):
        if path.name not in ("__init__.py", "__main__.py"):
            found.setdefault(path.parent, []).append(path)
    return found


def test_the_table_of_rooms_names_every_room_and_nothing_else(root: Path) -> None:
    found, missing = named((root / "ARCHITECTURE.md").read_text(), root)
    assert missing == set()
    tops = {root / "services" / name for name in ("anabranch", "anabranch_sim")}
    tops.add(root / "operator" / "anabranch_operator")
    tops.add(root / "spark-jobs" / "anabranch_spark")
    lost = {str(room.relative_to(root)) for room in rooms(root) if room not in found | tops}
    assert lost == set(), "name them in the table of rooms in ARCHITECTURE.md"


def test_a_room_has_about_fifteen_modules(root: Path) -> None:
    crowded = {
        str(room.relative_to(root)): len(modules)
        for room, modules in rooms(root).items()
        if len(modules) > MODULES_MAX and room.parent.name != "client"
    }
    assert crowded == {}


def test_every_module_and_room_says_what_it_is(root: Path) -> None:
    silent = [
        str(path.relative_to(root))
        for path in sources(root)
        if first_sentence(path.read_text()) is None
    ]
    assert silent == []


def test_what_is_not_there_and_what_is_not_named_are_seen(tmp_path: Path) -> None:
    (tmp_path / "core" / "wire").mkdir(parents=True)
    found, missing = named("| this | `core/wire/`, `core/gone/` |\n", tmp_path)
    assert missing == {"core/gone/"}
    assert found == {tmp_path / "core" / "wire"}


def test_a_module_that_says_nothing_is_seen() -> None:
    assert first_sentence("x = 1") is None
    assert first_sentence('"""One thing: here.\n\nMore."""') == "One thing: here."
