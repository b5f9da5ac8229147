"""How a process learns who its clients are."""

from enum import StrEnum

import msgspec

from anabranch.core.errors import BadRequest
from anabranch.core.rights.judge import Terms

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where a pod finds what it needs to talk to its API server."""

_MS_MIN = 1_000


class AuthMode(StrEnum):
    TOKEN = "token"  # noqa: S105 - the word, not one
    KUBERNETES = "kubernetes"


class AuthSettings(msgspec.Struct, frozen=True, kw_only=True):
    mode: AuthMode = AuthMode.TOKEN
    """`token`: whoever shows `token` may do everything, or whoever reaches the address if there is
    none. `kubernetes`: clients show tokens of service accounts, and RBAC says what they may do.
    """

    audience: str = "anabranch"
    """What clients' tokens must be made for."""

    namespace: str = ""
    """Where a log that no resource declares has its rights; empty: this pod's own."""

    server: str = ""
    """The API server, `https://host:port`; empty: that of the cluster this pod runs in."""

    folder: str = ACCOUNT
    """Where `token`, `ca.crt` and `namespace` are that this process itself needs."""

    allow_ms: int = 60_000
    """A right that was there is looked at again after this time."""

    deny_ms: int = 10_000
    """One that wasn't, after this."""

    grace_ms: int = 300_000
    """How much longer what was allowed stays so while the API server doesn't answer."""

    deadline_ms: int = 5_000
    """How long an answer may take that somebody waits for."""

    review_ms: int = 4_000
    """How long the API server may take for one review of a token or a right; no longer than
    `deadline_ms`, which holds for all that a client's request makes necessary.
    """

    entries_max: int = 65_536
    """Tokens, logs and rights that are remembered, of each."""

    def __post_init__(self) -> None:
        for name in ("allow_ms", "deny_ms", "deadline_ms", "review_ms"):
            value = getattr(self, name)
            if value < _MS_MIN:
                raise BadRequest(f"auth.{name} = {value}", f"{_MS_MIN} is the least")
        if self.grace_ms < 0 or self.entries_max < 1:
            raise BadRequest("auth", "grace_ms must be 0 or more, entries_max 1 or more")
        if not self.audience:
            raise BadRequest("auth.audience", "it is empty: tokens are made for somebody")
        if self.server and not self.server.startswith("https://"):
            raise BadRequest(f"auth.server = {self.server}", "write it as https://host:port")

    @property
    def terms(self) -> Terms:
        return Terms(
            allow_ms=self.allow_ms,
            deny_ms=self.deny_ms,
            grace_ms=self.grace_ms,
            entries_max=self.entries_max,
        )
