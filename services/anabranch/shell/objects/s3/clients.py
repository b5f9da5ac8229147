"""The two clients of one bucket: one that is fast, and one that knows everything.

obstore moves the bytes; boto3 is for what is rare (docs/decisions/0012-s3.md).
"""

import base64
import zlib
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from obstore.auth.boto3 import Boto3CredentialProvider
from obstore.store import S3Store

from anabranch.core.errors import AccessDenied
from anabranch.shell.net.tls import TlsSettings, check_files
from anabranch.shell.objects.s3.presigning import Keys
from anabranch.shell.objects.s3.settings import S3Settings

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from obstore.store import ClientConfig, RetryConfig, S3Config

ATTEMPTS_MAX = 5
IDLE_S = 5.0
"""A connection that nobody used for so long is closed. After an outage those that were idle are all
dead, nobody has told us, and each costs one of the few attempts that are made in it.
"""


def hot(settings: S3Settings) -> S3Store:
    """Without retries of its own: whoever repeats a PUT must know that it was one."""
    config: S3Config = {
        "region": settings.region,
        "virtual_hosted_style_request": not settings.path_style,
        "unsigned_payload": not settings.sign_payload,
        # Refused by the store if it doesn't fit what came.
        "checksum_algorithm": "CRC64NVME",
    }
    if settings.endpoint is not None:
        config["endpoint"] = _endpoint(settings, settings.endpoint)
    provider: Any = None
    if settings.access_key is not None and settings.secret_key is not None:
        config["access_key_id"] = settings.access_key
        config["secret_access_key"] = settings.secret_key
    else:
        provider = Boto3CredentialProvider(_session(settings))
    options: ClientConfig = {
        "allow_http": True,
        "timeout": timedelta(milliseconds=settings.attempt_ms),
        "connect_timeout": timedelta(milliseconds=settings.attempt_ms),
        "pool_idle_timeout": timedelta(seconds=IDLE_S),
    }
    if settings.ca_file is not None:
        check_files(TlsSettings(ca=settings.ca_file))
        options["root_certificate"] = Path(settings.ca_file).read_bytes()
    retries: RetryConfig = {"max_retries": 0}
    return S3Store(
        settings.bucket,
        prefix=settings.root.rstrip("/") or None,
        config=config,
        client_options=options,
        retry_config=retries,
        credential_provider=provider,
    )


def administrative(settings: S3Settings, attempts_max: int = ATTEMPTS_MAX) -> "S3Client":
    patience_s = settings.attempt_ms / 1_000
    config = Config(
        connect_timeout=patience_s,
        read_timeout=patience_s,
        retries={"mode": "standard", "total_max_attempts": attempts_max},
        s3={"addressing_style": "path" if settings.path_style else "virtual"},
    )
    session: Any = _session(settings)  # its type has an overload for every service there is
    return session.client(
        "s3", endpoint_url=settings.endpoint, verify=settings.ca_file, config=config
    )


class Lent:
    """The keys that readers' URLs are signed with, as they are now: those of a role are renewed."""

    def __init__(self, settings: S3Settings) -> None:
        self._given = Keys(settings.access_key or "", settings.secret_key or "")
        self._found = None if self._given.access else _session(settings).get_credentials()

    def keys(self) -> Keys:
        """Takes a thread: to renew them may ask others."""
        if self._found is None:
            return self._given
        found = self._found.get_frozen_credentials()
        return Keys(found.access_key or "", found.secret_key or "", found.token or "")


def content(body: bytes) -> dict[str, Any]:
    """With a checksum, as a header. The administrative client would compute one by itself, but over
    TLS it sends it behind the content, in a last chunk that a store may leave unread: it then takes
    the rest of it for the next request.
    """
    checksum = base64.b64encode(zlib.crc32(body).to_bytes(4, "big"))
    return {"Body": body, "ChecksumCRC32": checksum.decode()}


def _session(settings: S3Settings) -> boto3.Session:
    session = boto3.Session(
        aws_access_key_id=settings.access_key,
        aws_secret_access_key=settings.secret_key,
        region_name=settings.region,
    )
    if session.get_credentials() is None:
        reason = "no keys were given and none were found: set s3_access_key and s3_secret_key"
        raise AccessDenied(settings.where, "anonymous", reason)
    return session


def _endpoint(settings: S3Settings, endpoint: str) -> str:
    """As the fast client wants it: with the bucket's name in the host's, if it belongs there."""
    if settings.path_style:
        return endpoint
    parts = urlsplit(endpoint)
    return f"{parts.scheme}://{settings.bucket}.{parts.netloc}"
