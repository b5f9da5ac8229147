"""ARCHITECTURE.md says where to find what: all that it names is there, nothing is left out."""

import re
from pathlib import Path

TOKEN = re.compile(r"`([\w./]+)`")
ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def named(table: str, root: Path) -> tuple[set[Path], set[str]]:
    """Files and folders that the table names, and names for which there is nothing."""
    found: set[Path] = set()
    missing: set[str] = set()
    for _, cell in ROW.findall(table):
        folder = Path()
        for name in TOKEN.findall(cell):
            if name.endswith((".py", "/")) and "/" in name:
                folder = Path(name).parent
            elif not name.endswith(".py"):
                continue
            path = _at(root, folder / Path(name).name)
            if path is None:
                missing.add(name)
            else:
                found.add(path)
    return found, missing


def _at(root: Path, path: Path) -> Path | None:
    for home in (root / "services" / "anabranch", root):
        if (home / path).exists():
            return home / path
    return None


def test_the_map_leads_to_every_source_and_nowhere_else(
    root: Path, tracked: tuple[Path, ...]
) -> None:
    found, missing = named((root / "ARCHITECTURE.md").read_text(), root)
    assert missing == set()
    log = root / "services" / "anabranch"
    sources = {root / path for path in tracked if path.suffix == ".py"}
    ours = {path for path in sources if path.is_relative_to(log) and path.name != "__init__.py"}
    lost = {
        str(path.relative_to(log))
        for path in ours
        if path != log / "ports.py" and found.isdisjoint((path, *path.parents))
    }
    assert lost == set(), "name them in the tables of ARCHITECTURE.md"


def test_what_is_not_there_and_what_is_not_named_are_seen(tmp_path: Path) -> None:
    for name in ("core/a.py", "core/b.py", "cli/c.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    table = "| this | `core/a.py` (`rule`), `gone.py` |\n| that | `cli/` |\n"
    found, missing = named(table, tmp_path)
    assert missing == {"gone.py"}
    assert found == {tmp_path / "core" / "a.py", tmp_path / "cli"}
