"""What a command says while it waits, and how long it waits for a first answer."""

import asyncio
from collections.abc import Iterator
from typing import Any, cast

import click
import pytest

from anabranch.cli.main import CONTEXT, cli
from anabranch.cli.options.service import TIMEOUT_S, target_of
from anabranch.cli.service import target
from anabranch.core.errors import (
    AnabranchError,
    QuotaExceeded,
    StorageFull,
    Unavailable,
    UnknownLog,
)


class Waiting:
    """A connection whose obstacles are these in turn; then the command is done."""

    def __init__(self, *obstacles: AnabranchError | None) -> None:
        self._obstacles: Iterator[AnabranchError | None] = iter(obstacles)

    @property
    def obstacle(self) -> AnabranchError | None:
        try:
            return next(self._obstacles)
        except StopIteration:
            raise asyncio.CancelledError from None


def told(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    *obstacles: AnabranchError | None,
) -> list[str]:
    monkeypatch.setattr(target, "_LOOK_S", 0)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(target._report_obstacles(cast("Any", Waiting(*obstacles))))
    return capsys.readouterr().err.splitlines()


def test_the_cause_is_told_while_a_command_is_tried_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = Unavailable("the service", "a:1 can't be reached: Connection refused")
    full = StorageFull("the journal")
    assert told(capsys, monkeypatch, None, refused, refused, None, full, full) == [
        "retrying: a:1 can't be reached: Connection refused",
        f"retrying: {full.message}",
    ]


def test_a_cause_whose_numbers_change_is_told_once_and_in_this_front_s_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    causes = [QuotaExceeded("orders", "append_bytes_per_s", 1, 2, n) for n in range(3)]
    (line,) = told(capsys, monkeypatch, *causes)
    assert "`anabranch log quota orders`" in line
    (line,) = told(capsys, monkeypatch, UnknownLog("orders"))
    assert "`anabranch log list`" in line


def test_a_timeout_that_is_given_holds_for_the_first_answer_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    context = click.Context(cli, **CONTEXT)
    assert target_of(context, 60.0).first_answer_s == 60.0
    usual = target_of(context)
    assert (usual.timeout_s, usual.first_answer_s) == (TIMEOUT_S, target.FIRST_ANSWER_S)
