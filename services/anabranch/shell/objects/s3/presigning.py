"""URLs that fetch one range of one object, for readers without keys (S3's signature version 4).

By hand, because the general ways take 15 times as long: a scan has one for every few megabytes. The
Range header is signed too, so that a URL for some bytes fetches no others.
"""

import hmac
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from anabranch.core.types import MS, Milliseconds, Nanoseconds
from anabranch.shell.objects.s3.settings import S3Settings

VALID_S_MAX = 7 * 86_400
"""S3 takes no longer."""
_ALGORITHM = "AWS4-HMAC-SHA256"
_SERVICE = "s3"
_SIGNED_HEADERS = "host;range"


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
    moment = datetime.fromtimestamp(now // MS // 1_000, UTC)
    time = f"{moment:%Y%m%dT%H%M%SZ}"
    scope = f"{time[:8]}/{settings.region}/{_SERVICE}/aws4_request"
    seconds = max(1, min(valid_ms // 1_000, VALID_S_MAX))
    query = _query(keys, scope=scope, time=time, seconds=seconds)
    origin, host, above = _place(settings)
    above = quote(f"{above}{settings.root}")
    key = _signing_key(keys.secret, scope)
    begin = f"{_ALGORITHM}\n{time}\n{scope}\n"
    end = f"\n{_SIGNED_HEADERS}\nUNSIGNED-PAYLOAD"
    found: list[str] = []
    for name, offset, length in ranges:
        assert length > 0, "a range has a byte at least"
        path = f"{above}{name}"  # a name has no character that must be escaped
        header = f"bytes={offset}-{offset + length - 1}"
        asked = f"GET\n{path}\n{query}\nhost:{host}\nrange:{header}\n{end}"
        signed = f"{begin}{sha256(asked.encode()).hexdigest()}".encode()
        signature = hmac.digest(key, signed, "sha256").hex()
        found.append(f"{origin}{path}?{query}&X-Amz-Signature={signature}")
    return found


def _query(keys: Keys, *, scope: str, time: str, seconds: int) -> str:
    """In the order of the names, as they are signed."""
    values = {
        "X-Amz-Algorithm": _ALGORITHM,
        "X-Amz-Credential": f"{keys.access}/{scope}",
        "X-Amz-Date": time,
        "X-Amz-Expires": str(seconds),
        "X-Amz-Security-Token": keys.session,
        "X-Amz-SignedHeaders": _SIGNED_HEADERS,
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
