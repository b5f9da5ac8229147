"""An error that Spark shows is its message, and no frames of the client."""

import traceback
from collections.abc import Iterator

import pytest

from anabranch.errors import BadRequest
from anabranch_spark.plain_errors import plain, plain_rows


def _deep(left: int) -> int:
    if left:
        return _deep(left - 1)
    raise BadRequest("option from", "it must be a number")


def _rows() -> Iterator[int]:
    yield 1
    yield _deep(9)


def shown(error: BaseException) -> list[str]:
    return [line for line in traceback.format_exception(error) if "line" in line]


def test_frames_behind_the_method_are_left_out_and_notes_stay() -> None:
    @plain
    def method(left: int) -> int:
        """What it does."""
        try:
            return _deep(left)
        except BadRequest as error:
            error.add_note("a note")
            raise

    assert method.__doc__ == "What it does."
    with pytest.raises(BadRequest) as raised:
        method(9)
    assert len(shown(raised.value)) == 2, "this test's, and the wrapper's"
    assert "a note" in "".join(traceback.format_exception(raised.value))


def test_what_a_task_gives_comes_before_its_error() -> None:
    rows = plain_rows(_rows())
    assert next(rows) == 1
    with pytest.raises(BadRequest) as raised:
        next(rows)
    assert len(shown(raised.value)) == 2


def test_a_declared_cause_stays_and_other_errors_keep_their_frames() -> None:
    @plain
    def method(wrong: bool) -> None:
        try:
            raise OSError("the disk is full")
        except OSError as error:
            if wrong:
                raise
            raise BadRequest("a write", "it failed") from error

    with pytest.raises(BadRequest) as raised:
        method(wrong=False)
    assert isinstance(raised.value.__cause__, OSError)
    assert "the disk is full" in "".join(traceback.format_exception(raised.value))
    assert len(shown(raised.value)) == 2
    with pytest.raises(OSError, match="full") as other:
        method(wrong=True)
    assert len(shown(other.value)) == 3
