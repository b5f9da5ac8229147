"""Log lines to stderr: for people, or one JSON object a line for machines that collect them."""

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from typing import TextIO

import msgspec

from anabranch.core.types import Nanoseconds

Detail = str | int | float | bool | None


class LogFormat(StrEnum):
    HUMAN = "human"
    JSON = "json"


class Log:
    """What happened, in a sentence that never varies, and the particulars beside it."""

    def __init__(
        self,
        now: Callable[[], Nanoseconds],
        form: LogFormat = LogFormat.HUMAN,
        stream: TextIO | None = None,
    ) -> None:
        self._now = now
        self._form = form
        self._stream = stream or sys.stderr

    def info(self, event: str, **details: Detail) -> None:
        self._write("info", event, details)

    def warning(self, event: str, **details: Detail) -> None:
        self._write("warning", event, details)

    def error(self, event: str, **details: Detail) -> None:
        self._write("error", event, details)

    def _write(self, level: str, event: str, details: dict[str, Detail]) -> None:
        at = datetime.fromtimestamp(self._now() / 1e9, UTC)
        if self._form is LogFormat.JSON:
            stamp = at.isoformat(timespec="milliseconds")
            self._print(_json({"at": stamp, "level": level, "event": event, **details}))
            return
        shown = "".join(f" {key}={_quoted(value)}" for key, value in details.items())
        self._print(f"{at:%H:%M:%S} {level:7} {event}{shown}")

    def _print(self, line: str) -> None:
        """In one piece: other threads and processes write to the same place."""
        self._stream.write(f"{line}\n")
        self._stream.flush()


def _quoted(value: Detail) -> str:
    """One line, whatever it holds: a log line can't be forged by what a client sent, nor can that
    move the cursor of who looks at it.
    """
    text = str(value)
    if text.isalnum():
        return text
    return _json(text) if text.isprintable() else json.dumps(text)


def _json(value: str | dict[str, Detail]) -> str:
    """A path that isn't text has surrogates in it, which only ASCII can show."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))
