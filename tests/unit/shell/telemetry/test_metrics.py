"""Metrics of parts of a process, each under its own labels, and how often they are rendered."""

from dataclasses import dataclass

import pytest

from anabranch.shell.telemetry.metrics import RENDERS_MAX, KeptPage, Labelled, render


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


def test_a_page_of_metrics_is_rendered_so_often_and_no_more() -> None:
    now_s, renders = 0.0, 0

    def page() -> bytes:
        nonlocal renders
        renders += 1
        return b"%d" % renders

    kept = KeptPage(page, now_s=lambda: now_s)
    assert [kept() for _ in range(RENDERS_MAX)] == [b"%d" % n for n in range(1, RENDERS_MAX + 1)]
    assert {kept() for _ in range(1_000)} == {b"%d" % RENDERS_MAX}, "the last one serves"
    now_s = 1.0
    assert {kept() for _ in range(1_000)} == {b"%d" % (RENDERS_MAX + 1)}, "no older than a second"
    now_s = 3_600.0
    for _ in range(1_000):
        kept()
    assert renders == 2 * RENDERS_MAX + 1
