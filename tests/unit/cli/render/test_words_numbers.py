"""Numbers as they are printed: grouped for eyes at a terminal, and nowhere else."""

import re
import sys
from io import StringIO
from pathlib import Path

import pytest
from tests.unit.cli.render.test_belfast import cells, shard, status

from anabranch.cli.render.belfast import (
    OVERVIEW,
    SHARDS,
    WINDOWS,
    Rates,
    overview,
    shards,
    windows,
)
from anabranch.cli.render.words import counted, number

PRINTED_BACK = re.compile(
    r"number\([\w.]*\b(?:position|positions|fork_point|start|tail|settled|confirmed|since|up_to|"
    r"shared|snapshot|term|view|window|epoch|id)\)"
)
"""`number` of what somebody may type into the next command."""


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_counts_have_separators_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", StringIO())
    assert (number(1_234_567), counted(2_000, "record")) == ("1234567", "2000 records")
    assert number(1_234.6) == "1235"
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert (number(1_234_567), counted(2_000, "record")) == ("1,234,567", "2,000 records")
    assert number(1_234.6) == "1,235"


def test_positions_and_ids_are_never_grouped(root: Path) -> None:
    sources = sorted((root / "services" / "anabranch" / "cli").rglob("*.py"))
    grouped = {
        file.name: found
        for file in sources
        if (found := PRINTED_BACK.findall(file.read_text(encoding="utf-8")))
    }
    # A root log's tail is how many records it has.
    assert grouped == {"tree.py": ["number(log.tail)"], "logs.py": ["number(made.tail)"]}


def test_positions_of_a_belfast_log_are_typed_back_as_printed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal())
    found = status(shard("a", records=4_000))
    (log,) = overview(found)
    (window,) = windows(found)
    assert "," not in cells(OVERVIEW, log)["CONFIRMED"]
    assert "," not in cells(WINDOWS, window)["LAST POSITION"]


def test_a_share_of_nothing_is_a_dash() -> None:
    found = status(shard("a"))
    (log,) = overview(found)
    (row,) = shards(found)
    assert cells(OVERVIEW, log)["SPEC%"] == "-"
    assert cells(SHARDS, row)["SPEC%"] == "-"
    assert cells(SHARDS, row)["NO-OPS"] == "0 (-)"


def test_a_rate_over_no_time_is_a_dash() -> None:
    rates, found = Rates(), status(shard("a", records=4))
    list(rates.rows(found, 1.0))
    (row,) = rates.rows(found, 1.0)
    told = cells(Rates.columns, row)
    assert (told["RECORDS/s"], told["NO-OPS/s"], told["SPEC%"]) == ("-", "-", "-")
