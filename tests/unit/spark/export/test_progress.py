"""An export goes on where it stopped, after a kill between any two steps."""

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from anabranch.errors import BadRequest
from anabranch_spark.export.names import MANIFEST, file_name, range_of
from anabranch_spark.export.progress import (
    Manifest,
    check_same,
    next_position,
    publish,
    read_manifest,
)
from anabranch_spark.export.ranges import Range, by_records

BEGINNING = Manifest("orders", 7, 3, None, 0, 0)


class Killed(BaseException):
    """The process is gone: nothing that comes after is done."""


class Files:
    """A folder that is killed before its nth change."""

    def __init__(self) -> None:
        self.files = dict[str, bytes]()
        self.left = 1_000_000

    def names(self) -> list[str]:
        return list(self.files)

    def read(self, name: str) -> bytes:
        return self.files[name]

    def replace(self, name: str, content: bytes) -> None:
        self._step()
        self.files[name] = content

    def publish(self, staged: str, name: str) -> None:
        self._step()
        assert name not in self.files, "no file is written twice"
        self.files[name] = staged.encode()

    def _step(self) -> None:
        if self.left == 0:
            raise Killed
        self.left -= 1

    @contextmanager
    def killed_after(self, steps: int) -> Iterator[None]:
        self.left = steps
        try:
            yield
        except Killed:
            pass
        finally:
            self.left = 1_000_000

    @property
    def ranges(self) -> list[Range]:
        return sorted(each for each in map(range_of, self.files) if each is not None)


def run(files: Files, settled: int, records: int, at_once: int) -> None:
    """As the job does it, with files that hold nothing."""
    manifest = read_manifest(files, files.names())
    done = next_position(manifest, files.names())
    ranges = list(by_records(done or 0, settled, records))
    current = manifest or BEGINNING
    for first in range(0, len(ranges), at_once):
        batch = ranges[first : first + at_once]
        current = publish(files, [(f"part-{each}", each) for each in batch], current)


@given(
    runs=some.lists(some.tuples(some.integers(0, 300), some.integers(0, 12)), max_size=6),
    records=some.integers(20, 90),
    at_once=some.integers(1, 4),
)
def test_after_kills_at_any_step_each_position_is_there_once(
    runs: list[tuple[int, int]], records: int, at_once: int
) -> None:
    files, settled = Files(), 0
    for more, steps in runs:
        settled += more
        with files.killed_after(steps):
            run(files, settled, records, at_once)
    settled += 1
    run(files, settled, records, at_once)
    assert [p for each in files.ranges for p in range(each.start, each.end)] == [*range(settled)]
    manifest = read_manifest(files, files.names())
    assert manifest is not None
    assert manifest.next == settled


@given(taken=some.sets(some.integers(0, 9)), steps=some.integers(0, 12))
def test_files_that_were_taken_away_after_a_run_arent_written_again(
    taken: set[int], steps: int
) -> None:
    files = Files()
    run(files, 1_000, 100, 3)
    for number in taken:
        del files.files[file_name(Range(number * 100, number * 100 + 100))]
    before = set(files.ranges)
    with files.killed_after(steps):
        run(files, 2_000, 100, 3)
    run(files, 2_000, 100, 3)
    fresh = set(files.ranges) - before
    assert sorted(fresh) == list(by_records(1_000, 2_000, 100))


def test_a_run_with_nothing_new_changes_nothing() -> None:
    files = Files()
    run(files, 250, 100, 2)
    with files.killed_after(0):
        run(files, 250, 100, 2)
        return
    raise AssertionError("it changed something")


def test_another_export_that_was_faster_is_noticed_before_anything_is_renamed() -> None:
    files = Files()
    run(files, 100, 100, 1)
    staged = [("mine", Range(100, 200))]
    run(files, 150, 100, 1)
    there = dict(files.files)
    with pytest.raises(BadRequest, match=r"goes on at 150.*another export"):
        publish(files, staged, BEGINNING)
    assert files.files == there


@pytest.mark.parametrize(
    ("ranges", "reason"),
    [
        ([Range(0, 100), Range(50, 150)], "in common"),
        ([Range(0, 100), Range(0, 100 + 1)], "in common"),
        ([Range(0, 100), Range(200, 300)], r"\[100\.\.200\)"),
    ],
)
def test_a_folder_in_which_positions_are_missing_or_double_is_refused(
    ranges: list[Range], reason: str
) -> None:
    with pytest.raises(BadRequest, match=reason):
        next_position(None, map(file_name, ranges))


def test_a_gap_after_what_the_manifest_says_is_refused() -> None:
    manifest = msgspec.structs.replace(BEGINNING, next=100)
    with pytest.raises(BadRequest, match=r"\[100\.\.300\)"):
        next_position(manifest, [file_name(Range(300, 400))])
    assert next_position(manifest, [file_name(Range(100, 400)), "notes.txt"]) == 400


@pytest.mark.parametrize("theirs", [Range(0, 7), Range(3, 30), Range(10, 20)])
def test_another_export_that_publishes_at_the_same_moment_is_no_success(theirs: Range) -> None:
    """It is noticed afterwards, and by everybody who comes later."""

    class Raced(Files):
        def publish(self, staged: str, name: str) -> None:
            super().publish(staged, name)
            self.files[file_name(theirs)] = b"theirs"

    files = Raced()
    with pytest.raises(BadRequest, match=r"in common|another export"):
        publish(files, [("staged", Range(0, 10))], BEGINNING)
    assert MANIFEST not in files.files


@pytest.mark.parametrize(
    ("there", "reason"),
    [
        ({"log_id": 8, "log": "payments"}, "payments"),
        ({"generation": 4}, "restored"),
        ({"schema": "a INT"}, "another folder"),
    ],
)
def test_a_folder_of_something_else_is_refused(there: dict[str, object], reason: str) -> None:
    manifest = msgspec.convert({**msgspec.to_builtins(BEGINNING), **there}, Manifest)
    with pytest.raises(BadRequest, match=reason):
        check_same(manifest, BEGINNING)


def test_a_folder_of_an_earlier_generation_goes_on() -> None:
    check_same(msgspec.structs.replace(BEGINNING, generation=2), BEGINNING)
    check_same(None, BEGINNING)


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"not json", msgspec.json.encode(msgspec.structs.replace(BEGINNING, version=2))],
)
def test_a_manifest_that_cant_be_read_is_refused(content: bytes) -> None:
    files = Files()
    files.files[MANIFEST] = content
    with pytest.raises(BadRequest, match=MANIFEST):
        read_manifest(files, files.names())
