"""A log in words: its kind, its quota, what holds it up; and the fields that HTTP has too."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.cli.render.test_tree import described

from anabranch.apps.http.models import Log
from anabranch.cli.render.descriptions import (
    age,
    document,
    held_by,
    kind,
    quota_words,
    remaining,
    rows_of,
)
from anabranch.core.bolt.protocol.commands import Description, EngineSettings
from anabranch.core.quota import Quota
from anabranch.core.types import MS, Kind

ROOT = described(1, "r", None)
FORK = replace(described(2, "r--f", "r"), promotable=True, fork_point=5, expires_at=90_000)
TICKS = replace(
    ROOT,
    engine="belfast",
    settings=EngineSettings(shards=2, replicas=3, sequencers=1, cluster="c"),
)


def test_a_log_is_shown_with_the_fields_of_http() -> None:
    assert set(document(ROOT)) == set(Log.model_fields)


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (ROOT, "root"),
        (replace(FORK, promotable=False), "continuous"),
        (FORK, "continuous, promotable"),
        (replace(FORK, kind=Kind.SEVERED, promotable=False), "severed"),
        (replace(ROOT, front=EngineSettings(sequencers=1)), "root, lazy"),
        (TICKS, "belfast"),
    ],
)
def test_what_kind_of_log_it_is(log: Description, words: str) -> None:
    assert kind(log) == words


@pytest.mark.parametrize(
    ("undecided", "blocked_by", "words"),
    [
        (None, None, ""),
        ("r--f", None, "reads below 1: r--f is undecided"),
        ("r--f", "r--f", "no appends, reads below 1: r--f is undecided"),
    ],
)
def test_what_holds_a_log_up(undecided: str | None, blocked_by: str | None, words: str) -> None:
    assert held_by(replace(ROOT, undecided=undecided, append_blocked_by=blocked_by)) == words


@given(
    st.none() | st.integers(1, 1 << 50),
    st.none() | st.integers(1, 1 << 50),
    st.none() | st.integers(1, 1 << 50),
)
def test_a_quota_names_each_limit_that_is_set(
    appended: int | None, records: int | None, read: int | None
) -> None:
    words = quota_words(
        Quota(append_bytes_per_s=appended, append_records_per_s=records, read_bytes_per_s=read)
    ).split(", ")
    assert words[-1].startswith("bursts of ")
    assert len(words) == 1 + sum(each is not None for each in (appended, records, read))
    counted = f"appends {records} record{'s' * (records != 1)}/s"
    assert (counted in words) == (records is not None)


def test_no_quota_is_no_word() -> None:
    assert quota_words(None) == ""


def test_ages_never_go_below_nothing() -> None:
    made = replace(ROOT, created_at=10_000)
    assert age(made, 70_000 * MS) == "1 m"
    assert age(made, 0) == "0 us", "the clock of another machine"
    assert remaining(FORK, 30_000 * MS) == "1 m"
    assert remaining(FORK, 99_000 * MS) == "0 us"
    assert remaining(ROOT, 0) == ""


def test_rows_leave_out_what_a_log_does_not_have() -> None:
    rows = dict(rows_of(ROOT, {}, 0))
    assert set(rows) == {"name", "kind", "positions", "its own", "age"}
    rows = dict(rows_of(FORK, {"a": 1, "b": 2}, 0))
    assert rows["parent"] == "r at 5"
    assert rows["cursors"] == "a at 1, b at 2"
    assert rows["squashed in"] == "1 m 30 s"
    rows = dict(rows_of(TICKS, {}, 0))
    assert (rows["shards"], rows["sequencers"]) == ("2, of 3 replicas each", "1")
    assert "positions" not in rows


@pytest.mark.parametrize(("count", "words"), [(0, "0 records"), (1, "1 record")])
def test_records_of_a_log_are_counted_in_words(count: int, words: str) -> None:
    rows = dict(rows_of(replace(ROOT, own_records=count), {}, 0))
    assert rows["its own"] == words


@pytest.mark.parametrize("log", [ROOT, TICKS, replace(ROOT, front=EngineSettings(sequencers=1))])
def test_a_quota_is_shown_of_logs_of_all_engines(log: Description) -> None:
    limited = replace(log, quota=Quota(append_records_per_s=5))
    assert dict(rows_of(limited, {}, 0))["quota"] == "appends 5 records/s, bursts of 1 s"
