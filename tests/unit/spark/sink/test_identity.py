"""Names of writers and forks."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.bolt.logs.forest import check_name
from anabranch.core.limits import Limits
from anabranch.errors import BadRequest
from anabranch_spark.sink.identity import (
    Version,
    batch_version,
    fork_name,
    fork_owner,
    stream_version,
)
from anabranch_spark.sink.options import batch_options

PRINTABLE = st.text(min_size=1, max_size=150).filter(str.isprintable)
NUMBERS = st.integers(0, (1 << 53) - 1)
VERSIONS = st.builds(Version, PRINTABLE, NUMBERS)


def test_a_micro_batch_is_its_querys_version_unless_a_writer_is_named() -> None:
    query = "6d7b1e42-a599-4978-8d5e-2242879ebe89"
    assert stream_version(None, query, "7") == Version(f"spark-{query}", 7)
    assert stream_version("orders", query, "0") == Version("orders", 0)
    assert stream_version("orders", None, "0") == Version("orders", 0)


@pytest.mark.parametrize(
    ("query", "batch", "says"),
    [("q", None, "no batch id"), ("q", "", "no batch id"), (None, "0", "no query id.*'writer'")],
)
def test_a_task_that_knows_too_little_is_refused(
    query: str | None, batch: str | None, says: str
) -> None:
    with pytest.raises(BadRequest, match=says):
        stream_version(None, query, batch)


def test_a_batch_write_is_its_runs_only_version() -> None:
    named = batch_options({"log": "a", "runId": "2026-11-20"})
    assert batch_version(named, "drawn") == Version("run-2026-11-20", 0)
    assert batch_version(batch_options({"log": "a"}), "drawn") == Version("once-drawn", 0)
    numbered = batch_options({"log": "a", "writer": "nightly", "version": "7"})
    assert batch_version(numbered, "drawn") == Version("nightly", 7)


@given(VERSIONS, st.text("0123456789abcdef", min_size=8, max_size=8))
def test_every_version_has_a_name_and_an_owner_that_the_service_takes(
    version: Version, execution: str
) -> None:
    check_name(fork_name(version, execution), Limits().name_chars_max)
    assert len(fork_owner(version, execution)) <= Limits().owner_chars_max


@given(VERSIONS, VERSIONS)
def test_two_versions_have_two_forks(one: Version, other: Version) -> None:
    for naming in (fork_name, fork_owner):
        assert (naming(one, "ab") == naming(other, "ab")) == (one == other)
    assert fork_name(one, "ab") != fork_name(one, "cd")
    assert fork_owner(one, "ab") != fork_owner(one, "cd")


def test_a_forks_name_can_be_read() -> None:
    name = fork_name(Version("nightly load/eu", 7), "0a1b2c3d")
    assert re.fullmatch(r"spark-nightly-load-eu-[0-9a-f]{8}-7-0a1b2c3d", name)
