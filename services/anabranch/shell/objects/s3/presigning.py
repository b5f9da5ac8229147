"""URLs that fetch one range of one object, or create one, without keys (S3's signature version 4).

By hand, because the general ways take 15 times as long: a scan has one for every few megabytes. The
headers that say what is meant are signed too, so that a URL for some bytes fetches or writes no
others.
"""

import hmac
from base64 import b64encode
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from anabranch.core.machine import PutTarget
from anabranch.core.types import MS, Milliseconds, Nanoseconds
from anabranch.ports import NewObject
from anabranch.shell.objects.s3.settings import S3Settings

VALID_S_MAX = 7 * 86_400
"""S3 takes no longer."""
_ALGORITHM = "AWS4-HMAC-SHA256"
_SERVICE = "s3"


class Keys(NamedTuple):
    """Whose right to read is lent."""

    access: str
    secret: str
    session: str = ""
    """The token of keys that end by themselves."""


def presigned(
    settings: S3Settings,
    keys: Keys,
    ranges: Sequence[tuple[str, int, int]],
    valid_ms: Milliseconds,
    now: Nanoseconds,
) -> list[str]:
    """For each range (name, offset, length) a URL that is good from now on, for so long.

    Whoever uses it sends `Range: bytes=OFFSET-LAST` with it, and nothing else.
    """
    signing = _Signing(settings, keys, valid_ms, now, method="GET", headers=("host", "range"))
    found: list[str] = []
    for name, offset, length in ranges:
        assert length > 0, "a range has a byte at least"
        found.append(signing.url(name, (signing.host, f"bytes={offset}-{offset + length - 1}")))
    return found


def presigned_puts(
    settings: S3Settings,
    keys: Keys,
    contents: Sequence[NewObject],
    valid_ms: Milliseconds,
    now: Nanoseconds,
) -> list[PutTarget]:
    """For each new object a URL that creates it with this content, and the headers to send along.

    The store checks all of them: so many bytes, with this checksum, under a name that is free.
    """
    names = ("content-length", "host", "if-none-match", "x-amz-checksum-sha256")
    signing = _Signing(settings, keys, valid_ms, now, method="PUT", headers=names)
    found: list[PutTarget] = []
    for each in contents:
        values = (str(each.size), signing.host, "*", b64encode(each.sha256).decode())
        headers = {name: value for name, value in zip(names, values, strict=True) if name != "host"}
        found.append(PutTarget(signing.url(each.name, values), headers))
    return found


class _Signing:
    """What all URLs that are made at the same time have in common."""

    def __init__(
        self,
        settings: S3Settings,
        keys: Keys,
        valid_ms: Milliseconds,
        now: Nanoseconds,
        *,
        method: str,
        headers: tuple[str, ...],
    ) -> None:
        moment = datetime.fromtimestamp(now // MS // 1_000, UTC)
        time = f"{moment:%Y%m%dT%H%M%SZ}"
        scope = f"{time[:8]}/{settings.region}/{_SERVICE}/aws4_request"
        seconds = max(1, min(valid_ms // 1_000, VALID_S_MAX))
        assert [*headers] == sorted(headers), "they are signed in the order of their names"
        signed = ";".join(headers)
        self._query = _query(keys, scope=scope, time=time, seconds=seconds, headers=signed)
        self._origin, self.host, above = _place(settings)
        self._above = quote(f"{above}{settings.root}")
        self._key = _signing_key(keys.secret, scope)
        self._method, self._headers = method, headers
        self._begin = f"{_ALGORITHM}\n{time}\n{scope}\n"
        self._end = f"\n{signed}\nUNSIGNED-PAYLOAD"

    def url(self, name: str, values: Sequence[str]) -> str:
        """Of this object, with these values of the signed headers."""
        path = f"{self._above}{name}"  # a name has no character that must be escaped
        lines = "".join(
            f"{header}:{value}\n" for header, value in zip(self._headers, values, strict=True)
        )
        asked = f"{self._method}\n{path}\n{self._query}\n{lines}{self._end}"
        signed = f"{self._begin}{sha256(asked.encode()).hexdigest()}".encode()
        signature = hmac.digest(self._key, signed, "sha256").hex()
        return f"{self._origin}{path}?{self._query}&X-Amz-Signature={signature}"


def _query(keys: Keys, *, scope: str, time: str, seconds: int, headers: str) -> str:
    """In the order of the names, as they are signed."""
    values = {
        "X-Amz-Algorithm": _ALGORITHM,
        "X-Amz-Credential": f"{keys.access}/{scope}",
        "X-Amz-Date": time,
        "X-Amz-Expires": str(seconds),
        "X-Amz-Security-Token": keys.session,
        "X-Amz-SignedHeaders": headers,
    }
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in values.items() if value)


def _place(settings: S3Settings) -> tuple[str, str, str]:
    """The origin of all URLs, its host as it is signed, and what stands before an object's path."""
    endpoint = settings.endpoint or f"https://{_SERVICE}.{settings.region}.amazonaws.com"
    parts = urlsplit(endpoint)
    default = {"http": 80, "https": 443}[parts.scheme]
    host = parts.hostname or ""
    if ":" in host:
        host = f"[{host}]"
    if parts.port not in (None, default):
        host = f"{host}:{parts.port}"
    above = f"/{settings.bucket}/" if settings.path_style else "/"
    if not settings.path_style:
        host = f"{settings.bucket}.{host}"
    return f"{parts.scheme}://{host}", host, above


def _signing_key(secret: str, scope: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for word in scope.split("/"):
        key = hmac.digest(key, word.encode(), "sha256")
    return key
