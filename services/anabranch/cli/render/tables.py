"""How a table is laid out as text: as wide as it needs to be, so that no name is ever cut."""

import unicodedata
from collections.abc import Callable, Iterator, Sequence

_GAP = "  "


def rows_of_text(
    columns: Sequence[str],
    cells: Sequence[Sequence[str]],
    *,
    width: int | None = None,
    head_style: Callable[[str], str] = str,
) -> Iterator[str]:
    """The lines of a table. A column whose head begins with `>` is aligned right.

    If the rows are wider than the terminal (`width`), each becomes a block of its own with a cell
    a line: a cell that doesn't fit is wrapped by the terminal, and can still be copied whole.
    """
    heads = [head.removeprefix(">") for head in columns]
    titled = [heads] if any(heads) else []
    widths = [max(map(_width, column), default=0) for column in zip(*titled, *cells, strict=True)]
    needed = sum(widths) + len(_GAP) * (len(widths) - 1)
    if width is not None and titled and needed > width:
        yield from _blocks(heads, cells)
        return
    right = [head.startswith(">") for head in columns]
    for place, row in enumerate((*titled, *cells)):
        padded = (
            _padded(cell, wide, to_right=aligned)
            for cell, wide, aligned in zip(row, widths, right, strict=True)
        )
        line = _GAP.join(padded).rstrip()
        yield head_style(line) if titled and place == 0 else line


def _blocks(heads: Sequence[str], cells: Sequence[Sequence[str]]) -> Iterator[str]:
    wide = max(map(_width, heads))
    for place, row in enumerate(cells):
        if place:
            yield ""
        for head, cell in zip(heads, row, strict=True):
            if cell:
                yield f"{_padded(head, wide, to_right=False)}{_GAP}{cell}"


def _padded(cell: str, width: int, *, to_right: bool) -> str:
    blanks = " " * (width - _width(cell))
    return blanks + cell if to_right else cell + blanks


def _width(text: str) -> int:
    """Columns on a terminal: wide characters take two, and those that combine take none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(each) else 1 + (unicodedata.east_asian_width(each) in "WF")
        for each in text
    )
