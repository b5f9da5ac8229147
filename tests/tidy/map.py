"""Prints the map of the sources: every module with the first sentence of its docstring.

`make map` runs it. ARCHITECTURE.md names rooms only, so that it stays true while files move.
"""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOTS = ("services", "operator", "spark-jobs")
_SENTENCE = re.compile(r"^(.+?[.?])(?:\s|$)", re.DOTALL)


def sources(root: Path) -> Iterator[Path]:
    listed = subprocess.run(
        ["git", "ls-files", *(f"{name}/*.py" for name in ROOTS)],
        cwd=root,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    for line in listed.stdout.splitlines():
        if not line.endswith("_pb2.py"):
            yield root / line


def first_sentence(text: str) -> str | None:
    """None where a module says nothing of itself."""
    docstring = ast.get_docstring(ast.parse(text))
    if docstring is None:
        return None
    said = " ".join(docstring.split("\n\n")[0].split())
    found = _SENTENCE.match(said)
    return found[1] if found else said


def main() -> None:
    root = Path(__file__).resolve().parents[2]
    room = Path()
    for path in sources(root):
        said = first_sentence(path.read_text()) or ""
        if path.parent != room:
            room = path.parent
            print(f"\n{room.relative_to(root)}/")
        if path.name != "__init__.py":
            print(f"  {path.name:24} {said}")
        elif said:
            print(f"  {said}")


if __name__ == "__main__":
    main()
