"""Metrics of parts of a process, each under its own labels."""

from dataclasses import dataclass

import pytest

from anabranch.shell.telemetry.metrics import Labelled, render


@dataclass(slots=True)
class Numbers:
    appended: int = 0


def test_parts_of_one_kind_are_told_apart_by_their_labels() -> None:
    parts = Labelled(("log", "node"))
    parts.rows.append((("ticks", "shard-0-0"), Numbers(3)))
    parts.rows.append((("ticks", "shard-1-0"), Numbers(4)))
    shown = render({"shard": parts}, {}).decode().splitlines()
    assert 'anabranch_shard_appended_total{log="ticks",node="shard-0-0"} 3.0' in shown
    assert 'anabranch_shard_appended_total{log="ticks",node="shard-1-0"} 4.0' in shown
    assert sum(line.startswith("# HELP anabranch_shard_appended_total") for line in shown) == 1


def test_a_metric_without_a_help_text_is_not_served() -> None:
    @dataclass(slots=True)
    class Unknown:
        secrets: int = 0

    with pytest.raises(AssertionError, match="anabranch_shard_secrets_total is missing"):
        render({"shard": Unknown()}, {})


def test_without_parts_there_is_nothing_to_show() -> None:
    assert "anabranch_shard" not in render({"shard": Labelled(("log",))}, {}).decode()
