"""What `anabranch belfast append` asks of its client, and what it advises when that fails."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from click.testing import CliRunner

from anabranch.cli.commands.belfast import Target
from anabranch.cli.main import cli
from anabranch.core.errors import AnabranchError, DeadlineExceeded, OutcomeUnknown


class Answered:
    """An append that is done."""

    def __await__(self) -> Any:
        yield from ()
        return 2_650


class FakeLog:
    """A Belfast log that notes how it is asked, and fails if it is told to."""

    def __init__(self, error: AnabranchError | None = None) -> None:
        self.asked: list[dict[str, Any]] = []
        self._error = error

    async def append_soon(self, value: bytes, **told: Any) -> Answered:
        return await self._note(value, **told)

    async def append(self, value: bytes, **told: Any) -> int:
        return await (await self._note(value, **told))

    async def _note(self, value: bytes, **told: Any) -> Answered:
        self.asked.append({"value": value, **told})
        if self._error is not None:
            raise self._error
        return Answered()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    def running(log: FakeLog, *words: str) -> Any:
        def asked(_: Target, work: Callable[[Any], Awaitable[Any]]) -> Any:

            async def conversation() -> Any:
                return await work(log)

            return asyncio.run(conversation())

        monkeypatch.setattr(Target, "run", asked)
        return CliRunner().invoke(cli, ["belfast", "append", *words])

    return running


def test_a_position_is_printed_as_it_is_typed_back(run: Callable[..., Any]) -> None:
    assert run(FakeLog(), "a").output == "2650\n"


@pytest.mark.parametrize(("flags", "expected"), [((), False), (("--retry-unknown",), True)])
def test_retry_unknown_reaches_the_client(
    run: Callable[..., Any], flags: tuple[str, ...], *, expected: bool
) -> None:
    log = FakeLog()
    assert run(log, *flags, "a").exit_code == 0
    assert [each["retry_unknown"] for each in log.asked] == [expected]


def test_an_unknown_outcome_is_advised_in_flags_that_the_command_has(
    run: Callable[..., Any],
) -> None:
    failed = run(FakeLog(OutcomeUnknown("an append", "it failed", "say retry_unknown")), "a")
    assert isinstance(failed.exception, OutcomeUnknown)
    assert "--retry-unknown" in failed.exception.message
    assert "--request-id" in failed.exception.message
    assert "say retry_unknown" not in failed.exception.message


def test_a_late_append_with_a_request_id_is_to_be_run_again_as_it_was(
    run: Callable[..., Any],
) -> None:
    log = FakeLog(DeadlineExceeded("an append", 10, "mine/0"))
    failed = run(log, "--shard", "s", "--request-id", "mine", "a")
    assert isinstance(failed.exception, DeadlineExceeded)
    assert "run the same command again" in failed.exception.message
    assert "mine/0" not in failed.exception.message


def test_a_request_id_and_retry_unknown_contradict_each_other(run: Callable[..., Any]) -> None:
    log = FakeLog()
    refused = run(log, "--shard", "s", "--request-id", "mine", "--retry-unknown", "a")
    assert refused.exit_code == 2
    assert "not both" in refused.output
    assert log.asked == []
