"""Commands that a test runs in its own process, and what they printed."""

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from anabranch.cli.failure import Exit, run
from anabranch.cli.main import PROGRAM, cli


@dataclass(frozen=True, slots=True)
class Said:
    """What a command printed."""

    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.split("\n") if line]

    @property
    def error(self) -> Any:
        """Of `-o json`."""
        return json.loads(self.err)["error"]

    @property
    def bytes(self) -> bytes:
        return self.out.encode("utf-8", "surrogateescape")


Command = Callable[..., Said]
"""Runs a command in this process: `(*arguments, stdin=b"", code=0)`."""


def command_runner(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Command:
    """Make a function that runs commands; one that leaves with another code fails the test."""

    def command(*arguments: str, stdin: bytes = b"", code: int = Exit.OK) -> Said:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        left = run(cli, PROGRAM, arguments)
        said = capsysbinary.readouterr()
        assert left == code, said.err.decode()
        return Said(said.out.decode("utf-8", "surrogateescape"), said.err.decode())

    return command
