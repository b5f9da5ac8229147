"""Log lines about requests: which failed for no fault of their client's, who wasn't allowed what,
and, where clients have names, who gave which command.

A failure or refusal has a line for the first of its kind in each second, with how many came since
the one before: an outage that fails ten thousand requests a second is logged, and fills no disk.
Commands are bounded by what each client may give in a time.
"""

from collections.abc import Sequence

from anabranch.core.errors import BY_CODE, AnabranchError, Forbidden, Refresh, Unauthenticated
from anabranch.core.errors.refused import Refused
from anabranch.core.rights.claims import Claim, Subject
from anabranch.shell.telemetry.log import Log

INTERVAL_S = 1.0
_DENIALS = frozenset({Forbidden.code, Unauthenticated.code})


class RequestLog:
    def __init__(self, log: Log) -> None:
        self._log = log
        self._last: dict[str, float] = {}
        self._silent: dict[str, int] = {}

    def refused(self, client: str, request: int, refused: Refused, now_s: float) -> None:
        """`request` is the number that the client gave it on its connection."""
        code = refused.code
        kind = BY_CODE.get(code, AnabranchError)
        denied = code in _DENIALS
        if not denied and (kind.status < 500 or issubclass(kind, Refresh)):
            return
        last = self._last.get(code)
        if last is not None and now_s - last < INTERVAL_S:
            self._silent[code] = self._silent.get(code, 0) + 1
            return
        self._last[code] = now_s
        more = self._silent.pop(code, 0)
        self._log.warning(
            "a request was denied" if denied else "a request failed",
            client=client,
            request=request,
            code=code,
            reason=refused.message,
            more_since=more,
        )

    def allowed(self, client: str, who: str, command: str, claims: Sequence[Claim]) -> None:
        """A command that the client has the rights for, and that is now carried out."""
        about = " ".join(f"{claim.verbs[0]} {_named(claim)}" for claim in claims)
        self._log.info("a command was allowed", client=client, who=who, command=command, by=about)


def _named(claim: Claim) -> str:
    about = claim.about
    if isinstance(about, Subject):
        return "/".join(filter(None, (about.namespace, about.resource, about.name)))
    return f"log {about}"
