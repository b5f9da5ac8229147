"""Metrics of parts of a process, each under its own labels."""

from dataclasses import dataclass

from anabranch.shell.telemetry.metrics import Labelled, render


@dataclass(slots=True)
class Numbers:
    appends: int = 0


def test_parts_of_one_kind_are_told_apart_by_their_labels() -> None:
    parts = Labelled(("log", "node"))
    parts.rows.append((("ticks", "shard-0-0"), Numbers(3)))
    parts.rows.append((("ticks", "shard-1-0"), Numbers(4)))
    shown = render({"shard": parts}, {"shard": parts}).decode().splitlines()
    assert 'anabranch_shard_appends_total{log="ticks",node="shard-0-0"} 3.0' in shown
    assert 'anabranch_shard_appends{log="ticks",node="shard-1-0"} 4.0' in shown
    assert sum(line.startswith("# HELP anabranch_shard_appends_total") for line in shown) == 1


def test_without_parts_there_is_nothing_to_show() -> None:
    assert "anabranch_shard" not in render({"shard": Labelled(("log",))}, {}).decode()
