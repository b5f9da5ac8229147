"""What the operator is measured by: each practice once, and the tests that its row names."""

import re
from pathlib import Path

import pytest

PAGE = Path("docs/reference/operator-checklist.md")
PRACTICES = 65
ROW = re.compile(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
LEVEL = re.compile(r"^\| \d \| [^|]+ \| ([^|]+) \|[^|]*\|$", re.MULTILINE)
LINK = re.compile(r"\[([^\]]+)\]\((\S+?)\)")


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / PAGE).read_text(encoding="utf-8")


def test_every_practice_is_done_or_not_done_with_a_reason(page: str) -> None:
    rows = ROW.findall(page)
    assert [int(number) for number, _, _ in rows] == list(range(1, PRACTICES + 1))
    for number, _, stands in rows:
        done, colon, rest = stands.partition(": ")
        assert done in ("done", "not done"), number
        assert colon, number
        assert rest, number
        assert done == "not done" or LINK.search(rest), number


def test_every_test_that_is_named_is_in_its_file(page: str, root: Path) -> None:
    found = [(words, target) for words, target in LINK.findall(page) if "/test_" in target]
    assert len(found) > PRACTICES
    missing = [words for words, target in found if not is_there(root / PAGE.parent / target, words)]
    assert missing == []


def test_a_test_that_is_not_there_is_seen(root: Path) -> None:
    here = Path(__file__)
    assert is_there(here, "a test that is not there is seen")
    assert is_there(here, "a test that is not there")
    assert not is_there(here, "a test that is not th")
    assert not is_there(here, "test that is not there is seen")


def test_levels_are_shown_by_what_is_done(page: str) -> None:
    done = {number for number, _, stands in ROW.findall(page) if stands.startswith("done")}
    levels = LEVEL.findall(page)
    assert len(levels) == 5
    for shown in levels:
        assert set(re.findall(r"\d+", shown)) <= done


def is_there(file: Path, words: str) -> bool:
    """Its name, or how that begins."""
    name = re.escape("_".join(words.split()))
    return bool(re.search(rf"^(async )?def test_{name}(_\w+)?\(", file.read_text(), re.MULTILINE))
