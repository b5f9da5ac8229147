"""Log lines about requests that failed for no fault of who asked: an operator wants to know.

A line for the first of a kind in each second, with how many came since the one before: an outage
that fails ten thousand requests a second is told, and fills no disk.
"""

from anabranch.core.errors import BY_CODE, AnabranchError, Refresh
from anabranch.core.errors.refused import Refused
from anabranch.shell.telemetry.log import Log

INTERVAL_S = 1.0


class Complaints:
    def __init__(self, log: Log) -> None:
        self._log = log
        self._last: dict[str, float] = {}
        self._silent: dict[str, int] = {}

    def note(self, client: str, request: int, refused: Refused, now_s: float) -> None:
        """`request` is the number that the client gave it on its connection."""
        code = refused.code
        kind = BY_CODE.get(code, AnabranchError)
        if kind.status < 500 or issubclass(kind, Refresh):
            return
        last = self._last.get(code)
        if last is not None and now_s - last < INTERVAL_S:
            self._silent[code] = self._silent.get(code, 0) + 1
            return
        self._last[code] = now_s
        more = self._silent.pop(code, 0)
        self._log.warning(
            "a request failed",
            client=client,
            request=request,
            code=code,
            reason=refused.message,
            more_since=more,
        )
