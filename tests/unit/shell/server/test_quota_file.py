"""A shard's share of its log's quota, as its process reads it from a file."""

import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.errors import BadRequest
from anabranch.core.limits import Limits
from anabranch.core.quota import AppendShare, Quota
from anabranch.core.records.record import Record, encode
from anabranch.shell.server.append_limits import AppendLimits
from anabranch.shell.server.quota_file import FollowedQuota, read

BATCH = encode([Record(b"x")] * 3, now=0)


def write(file: Path, text: str) -> None:
    """As whoever keeps it up to date does: another file under the same name."""
    part = file.with_suffix(".part")
    part.write_text(text)
    part.replace(file)


def limits() -> AppendLimits:
    return AppendLimits("cluster", Limits(), lambda: 1)


@pytest.mark.parametrize("text", [None, "", " \n", "{}", '{"of a later version": 1}'])
def test_what_says_nothing_limits_nothing(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "quota.json"
    if text is not None:
        write(file, text)
    made = limits()
    FollowedQuota(made, str(file), None)
    assert not made.active


def test_a_share_is_what_was_written(tmp_path: Path) -> None:
    file = tmp_path / "quota.json"
    quota = Quota(append_bytes_per_s=900, append_records_per_s=7, burst_ms=50)
    write(file, msgspec.json.encode(AppendShare.of("ticks", quota, 3)).decode())
    share = read(str(file))
    assert share.log == "ticks"
    assert share.quota == Quota(append_bytes_per_s=300, append_records_per_s=2, burst_ms=50)


def test_a_changed_file_is_enforced_at_the_next_look(tmp_path: Path) -> None:
    file = tmp_path / "quota.json"
    made = limits()
    followed = FollowedQuota(made, str(file), None)
    write(file, '{"log": "ticks", "append_records_per_s": 2, "burst_ms": 1}')
    assert made.refuse(BATCH) is None, "it hasn't been looked at yet"
    followed.look()
    assert made.refuse(BATCH) is None
    refused = made.refuse(BATCH)
    assert refused is not None
    assert refused.facts["log"] == "ticks"
    followed.look()
    assert made.refuse(BATCH) is not None, "another look forgives nothing"
    write(file, "{}")
    followed.look()
    assert not made.active


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[1]",
        '{"append_records_per_s": "many"}',
        '{"append_records_per_s": 0}',
        '{"append_bytes_per_s": -1}',
        '{"burst_ms": 0}',
    ],
)
def test_a_file_that_cant_be_read_is_named_and_changes_nothing(tmp_path: Path, text: str) -> None:
    file = tmp_path / "quota.json"
    write(file, '{"append_records_per_s": 2, "burst_ms": 1}')
    made = limits()
    followed = FollowedQuota(made, str(file), None)
    write(file, text)
    followed.look()
    assert made.active, "the last good one is enforced on"
    with pytest.raises(BadRequest, match=r"quota\.json"):
        FollowedQuota(limits(), str(file), None)


def test_a_pipe_in_the_place_of_the_file_keeps_nobody_waiting(tmp_path: Path) -> None:
    file = tmp_path / "quota.json"
    write(file, '{"append_records_per_s": 2, "burst_ms": 1}')
    made = limits()
    followed = FollowedQuota(made, str(file), None)
    file.unlink()
    os.mkfifo(file)
    followed.look()
    assert made.active
    with pytest.raises(BadRequest, match="isn't a regular file"):
        read(str(file))


@given(st.integers(1, 10**12), st.integers(1, 1_000))
def test_shares_add_up_to_no_more_than_the_quota_unless_each_is_the_least(
    rate: int, shards: int
) -> None:
    share = Quota(append_records_per_s=rate).share(shards).append_records_per_s
    assert share is not None
    assert share >= 1
    assert share * shards <= rate or share == 1
    assert (share + 1) * shards > rate
