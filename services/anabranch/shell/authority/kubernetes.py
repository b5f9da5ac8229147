"""`Registry` on a Kubernetes API server: TokenReview says who it is, SubjectAccessReview what they
may do.
"""

from typing import Any

import msgspec

from anabranch.core.errors import Unavailable
from anabranch.core.rights.claims import GROUP, Right
from anabranch.core.rights.judge import Guest
from anabranch.shell.authority.api import WHAT, ApiServer

TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class _User(msgspec.Struct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class _TokenStatus(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: _User = _User()
    audiences: tuple[str, ...] = ()
    error: str = ""


class _TokenReview(msgspec.Struct, frozen=True):
    status: _TokenStatus


class _AccessStatus(msgspec.Struct, frozen=True):
    allowed: bool
    denied: bool = False


class _AccessReview(msgspec.Struct, frozen=True):
    status: _AccessStatus


class Reviews:
    """Each question is one call."""

    def __init__(self, server: ApiServer, audience: str) -> None:
        self._server = server
        self._audience = audience

    async def who_is(self, token: str) -> Guest | str:
        spec = {"token": token, "audiences": [self._audience]}
        status = (await self._ask(TOKENS, "TokenReview", spec, _TokenReview)).status
        if not status.authenticated:
            return status.error or "it is nobody's, or its time is over"
        # A server that knows nothing of audiences says yes to any, and names none.
        if self._audience not in status.audiences:
            return f"it is made for {', '.join(status.audiences) or 'any audience'}"
        user = status.user
        extra = tuple(sorted(user.extra.items()))
        return Guest(user.username, user.uid, tuple(user.groups), extra)

    async def may(self, guest: Guest, right: Right) -> bool:
        about = right.subject
        spec = {
            "user": guest.name,
            "uid": guest.uid,
            "groups": guest.groups,
            "extra": dict(guest.extra),
            "resourceAttributes": {
                "group": GROUP,
                "resource": about.resource,
                "namespace": about.namespace,
                "name": about.name,
                "verb": right.verb,
            },
        }
        status = (await self._ask(ACCESS, "SubjectAccessReview", spec, _AccessReview)).status
        return status.allowed and not status.denied

    async def close(self) -> None:
        self._server.close()

    async def _ask(self, path: str, kind: str, spec: dict[str, Any], answer: type[Any]) -> Any:
        group = path.split("/")[2]
        body = {"apiVersion": f"{group}/v1", "kind": kind, "spec": spec}
        content = await self._server.post(path, msgspec.json.encode(body), kind)
        try:
            return msgspec.json.decode(content, type=answer)
        except msgspec.DecodeError as unreadable:
            raise Unavailable(WHAT, f"its answer can't be read: {unreadable}") from None
