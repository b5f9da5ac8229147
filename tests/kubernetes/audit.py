"""The API server's own account of who asked it what."""

from dataclasses import dataclass
from typing import Any

import msgspec

MARK = "/version?mark="
"""A request for it only marks a place in the account."""


@dataclass(frozen=True, slots=True)
class Request:
    user: str
    verb: str
    """Of RBAC: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, ..."""
    group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    code: int
    agent: str
    uri: str
    sent: Any
    """What was to be written; kept for our own resources, events and reviews of access."""

    @property
    def writes(self) -> bool:
        return self.verb not in {"get", "list", "watch"}


class _User(msgspec.Struct):
    username: str = ""


class _Object(msgspec.Struct, rename="camel"):
    api_group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class _Status(msgspec.Struct):
    code: int = 0


class _Line(msgspec.Struct, rename="camel"):
    stage: str
    verb: str
    request_uri: str = msgspec.field(name="requestURI", default="")
    user: _User = msgspec.field(default_factory=_User)
    user_agent: str = ""
    object_ref: _Object = msgspec.field(default_factory=_Object)
    response_status: _Status = msgspec.field(default_factory=_Status)
    request_object: Any = None


_LINE = msgspec.json.Decoder(_Line)


def read(account: bytes) -> list[Request]:
    """Each request once, a watch when it begins; marks aside."""
    lines = map(_LINE.decode, account.splitlines())
    return [_request(line) for line in lines if _counts(line)]


def _counts(line: _Line) -> bool:
    begins = line.stage == "ResponseStarted"
    return begins == (line.verb == "watch") and not line.request_uri.startswith(MARK)


def _request(line: _Line) -> Request:
    about = line.object_ref
    return Request(
        user=line.user.username,
        verb=line.verb,
        group=about.api_group,
        resource=about.resource,
        subresource=about.subresource,
        namespace=about.namespace,
        name=about.name,
        code=line.response_status.code,
        agent=line.user_agent,
        uri=line.request_uri,
        sent=line.request_object,
    )
