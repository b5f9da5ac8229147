"""URLs for one range of one object, or for one new object, against botocore's."""

from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs, urlsplit

import botocore.auth
import pytest
from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from anabranch.ports import NewObject
from anabranch.shell.objects.s3.presigning import Keys, presigned, presigned_puts
from anabranch.shell.objects.s3.settings import S3Settings

NOW = datetime(2026, 11, 20, 7, 8, 9, tzinfo=UTC)
RANGES = [("c/data/0001/0002", 0, 10), ("c/data/0001/0003", 4_096, 1)]
SETTINGS: list[dict[str, Any]] = [
    {"endpoint": "http://127.0.0.1:9000"},
    {"endpoint": "https://s3.example.com:443", "prefix": "deep/er"},
    {"endpoint": "https://s3.example.com:8443", "path_style": False},
    {"region": "eu-central-1", "path_style": False},
    {"region": "eu-central-1"},
]


@pytest.mark.parametrize("token", ["", "a token/+= of a role"])
@pytest.mark.parametrize("more", SETTINGS)
def test_a_url_is_signed_as_botocore_signs_it_with_its_range(
    more: dict[str, Any], token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = S3Settings(bucket="logs", **more)
    keys = Keys("AKID", "a secret", token)
    found = presigned(settings, keys, RANGES, 900_000, int(NOW.timestamp()) * 10**9)
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda **_: NOW.replace(tzinfo=None))
    credentials = Credentials("AKID", "a secret", token or None)
    for url, (name, offset, length) in zip(found, RANGES, strict=True):
        assert urlsplit(url).path.endswith(f"{settings.root}{name}")
        header = {"Range": f"bytes={offset}-{offset + length - 1}"}
        request = AWSRequest("GET", url.partition("?")[0], headers=header)
        S3SigV4QueryAuth(credentials, "s3", settings.region, expires=900).add_auth(request)
        assert _facts(url) == _facts(str(request.url))


@pytest.mark.parametrize("more", SETTINGS)
def test_a_url_for_a_new_object_is_signed_with_all_that_says_what_it_holds(
    more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = S3Settings(bucket="logs", **more)
    keys = Keys("AKID", "a secret", "")
    content = NewObject("c/data/0001/0002", 10, sha256(b"0123456789").digest())
    (found,) = presigned_puts(settings, keys, [content], 900_000, int(NOW.timestamp()) * 10**9)
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda **_: NOW.replace(tzinfo=None))
    assert found.headers["if-none-match"] == "*"
    request = AWSRequest("PUT", found.url.partition("?")[0], headers=found.headers)
    credentials = Credentials("AKID", "a secret", None)
    S3SigV4QueryAuth(credentials, "s3", settings.region, expires=900).add_auth(request)
    assert _facts(found.url) == _facts(str(request.url))


def _facts(url: str) -> tuple[str, str, dict[str, list[str]]]:
    parts = urlsplit(url)
    return parts.netloc, parts.path, parse_qs(parts.query)
