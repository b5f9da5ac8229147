"""The documents' examples: every block of code on every page, with where it is."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_PAGES = ("README.md", "CONTRIBUTING.md", "docs/**/*.md", "charts/*/*.md", "examples/**/*.md")
_SHELL = {"sh", "console", "server"}
_PROMPT = "$ "
_WORD = re.compile(r"[\w./-]+")


@dataclass(frozen=True, slots=True)
class Block:
    page: str
    language: str
    """Empty if the page doesn't say."""
    text: str

    @property
    def commands(self) -> list[str]:
        """Lines that a reader types into a shell, continued lines joined."""
        joined = self.text.replace("\\\n", " ")
        lines = [line.strip() for line in joined.splitlines() if line.strip()]
        if self.language == "console":
            return [line.removeprefix(_PROMPT) for line in lines if line.startswith(_PROMPT)]
        if self.language in _SHELL or (not self.language and _is_typed(lines)):
            return [line.removeprefix(_PROMPT) for line in lines]
        return []

    def __str__(self) -> str:
        return f"{self.page}: {self.text.strip().splitlines()[0]}"


_TYPED = (
    "anabranch",
    ".venv/bin/",
    "curl",
    "docker",
    "helm",
    "kubectl",
    "make",
    "pip",
)


def _is_typed(lines: list[str]) -> bool:
    return bool(lines) and lines[0].startswith(_TYPED)


@cache
def blocks(root: Path) -> tuple[Block, ...]:
    pages = sorted({page for each in _PAGES for page in root.glob(each)})
    assert len(pages) > 40, "where have the documents gone?"
    return tuple(
        Block(str(page.relative_to(root)), language, text)
        for page in pages
        for language, text in _FENCE.findall(page.read_text())
    )
