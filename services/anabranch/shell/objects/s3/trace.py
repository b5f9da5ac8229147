"""A line of the log for every call to the store, if the setting asks for it."""

from dataclasses import dataclass

from anabranch.core.types import MS, Nanoseconds
from anabranch.shell.objects.s3.meter import Kind
from anabranch.shell.telemetry.log import Log


@dataclass(slots=True)
class Call:
    """One call, from when it was made; its attempts so far, and what the last one met with."""

    kind: Kind
    name: str
    began: Nanoseconds
    attempts: int = 0
    reason: str = ""


class Trace:
    def __init__(self, log: Log, *, on: bool) -> None:
        self._log = log
        self._on = on

    def ended(self, call: Call, now: Nanoseconds, outcome: str) -> None:
        if self._on:
            self._log.info(
                "object store call",
                kind=call.kind,
                object=call.name,
                outcome=outcome,
                attempts=call.attempts,
                ms=round((now - call.began) / MS, 2),
                fault=call.reason,
            )
