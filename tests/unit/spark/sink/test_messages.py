"""What tasks report adds up, or nothing is committed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from anabranch.errors import BadRequest
from anabranch_spark.sink.identity import Version
from anabranch_spark.sink.messages import PartWritten, forks_of, merged

V7 = Version("q", 7)
WRITTEN = st.builds(
    PartWritten,
    version=st.just(V7),
    part=st.integers(0, 1_000),
    batches=st.integers(0, 3),
    records=st.integers(0, 9),
    fork=st.sampled_from([None, "a--b"]),
    published=st.booleans(),
)
BATCHES = st.lists(WRITTEN, min_size=1, max_size=9, unique_by=lambda each: each.part)


@given(BATCHES, st.randoms(use_true_random=False))
def test_the_whole_is_the_sum_of_its_parts_in_any_order(
    found: list[PartWritten], chance: Any
) -> None:
    whole = merged(found, 7)
    assert whole.version == V7
    assert whole.parts == {each.part: each.batches for each in found if each.batches > 0}
    assert whole.records == sum(each.records for each in found)
    assert whole.published == any(each.published for each in found)
    assert [*filter(None, [whole.fork])] == forks_of(found)
    shuffled = chance.sample(found, len(found))
    assert merged(shuffled) == whole


@given(BATCHES, st.data())
def test_a_report_that_is_missing_or_of_something_else_is_refused(
    found: list[PartWritten], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(found) - 1))
    spoilt: list[list[PartWritten | None]] = [[*found[:place], None, *found[place:]]]
    other = replace(found[place], part=1_001)
    versions = Version("q", 8), Version("r", 7)
    spoilt.extend([*found, replace(other, version=version)] for version in versions)
    spoilt.append([*found, found[place]])
    for fork in ("a--c", "a--d"):
        other = replace(other, part=other.part + 1, fork=fork)
        found = [*found, other]
    spoilt.append([*found])
    for each in spoilt:
        with pytest.raises(BadRequest, match="nothing was committed"):
            merged(each)


def test_a_commit_of_another_batch_or_of_none_is_refused() -> None:
    part = PartWritten(version=V7, part=0)
    with pytest.raises(BadRequest, match="report batch 7, and Spark commits 8"):
        merged([part], 8)
    with pytest.raises(BadRequest, match="0 of 0"):
        merged([])


def test_an_abort_knows_the_forks_of_the_tasks_that_reported() -> None:
    one = PartWritten(version=V7, part=0, fork="b")
    assert forks_of([None, one, replace(one, part=1), replace(one, fork="a"), None]) == ["a", "b"]
    assert forks_of([None, PartWritten(version=V7, part=0)]) == []
