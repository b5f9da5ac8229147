"""A store that speaks TLS with a certificate of one's own authority."""

import asyncio
import io
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.certificates import certified
from tests.servers import bucket_of, needs

from anabranch.apps.processes.binaries import VERSITYGW
from anabranch.apps.processes.servers import S3Server
from anabranch.core.errors import StorageFailed, Unavailable
from anabranch.core.limits import MIB
from anabranch.shell.objects.s3.admin import open_bucket
from anabranch.shell.objects.s3.clients import administrative, content
from anabranch.shell.objects.s3.settings import S3Settings
from anabranch.shell.objects.s3.store import S3Store
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.telemetry.log import Log

CLOCK = Clock()


def log() -> Log:
    return Log(CLOCK.now, stream=io.StringIO())


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `ca`, and a `cert` of its for 127.0.0.1 with its `key`."""
    folder = tmp_path_factory.mktemp("authority")

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    try:
        openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca", "-subj", "/CN=ca")
        openssl("req", *key, "-keyout", "key", "-out", "csr", "-subj", "/CN=s3")
        signed = ["-CA", "ca", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "names"]
        openssl("x509", "-req", "-in", "csr", *signed, "-out", "cert")
    except FileNotFoundError:
        pytest.skip("certificates are made by openssl, which isn't installed")
    return folder


@pytest.fixture(scope="module")
def settings(authority: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Settings]:
    needs(VERSITYGW)
    certificate = authority / "cert", authority / "key"
    server = S3Server(tmp_path_factory.mktemp("s3") / "s3", certificate=certificate)
    try:
        server.start()
        yield bucket_of(server)
    finally:
        server.kill()


def test_both_clients_trust_the_authority_that_they_are_given(
    settings: S3Settings, authority: Path
) -> None:
    trusting = replace(settings, ca_file=str(authority / "ca"), multipart_bytes_min=MIB)
    open_bucket(trusting, log(), CLOCK.now())

    async def body() -> None:
        store = S3Store(trusting, log(), CLOCK.now)
        await store.put("a/1", [b"small"])
        await store.put("a/2", [bytes(MIB)])
        assert await store.get("a/1", 0, 5) == b"small"
        assert await store.size("a/2") == MIB
        await store.close()

    asyncio.run(body())


def test_nothing_comes_behind_the_content(settings: S3Settings, authority: Path) -> None:
    """A store may answer before it has read that, and take it for the next request."""
    client = administrative(replace(settings, ca_file=str(authority / "ca")))
    sent: list[dict[str, bytes]] = []

    def note(request: Any, **_: Any) -> None:
        sent.append(dict(request.headers))

    client.meta.events.register("before-send.s3", note)
    client.put_object(Bucket=settings.bucket, Key="c/1", **content(b"small"))
    (headers,) = sent
    assert headers["x-amz-checksum-crc32"]
    assert int(headers["Content-Length"]) == len(b"small")
    assert "X-Amz-Trailer" not in headers


def test_neither_trusts_another(settings: S3Settings) -> None:
    with pytest.raises(Unavailable, match=r"nobody answers .*certificate"):
        open_bucket(settings, log(), CLOCK.now())

    async def body() -> None:
        store = S3Store(replace(settings, attempt_ms=2_000, deadline_ms=2_000), log(), CLOCK.now)
        with pytest.raises(StorageFailed):
            await store.get("a/1", 0, 5)
        await store.close()

    asyncio.run(body())


def test_the_authority_that_is_trusted_may_be_replaced(
    settings: S3Settings, authority: Path, tmp_path: Path
) -> None:
    trusted = tmp_path / "ca"
    right, wrong = (authority / "ca").read_bytes(), certified(tmp_path / "other").ca
    trusted.write_bytes(Path(wrong).read_bytes())
    trusting = replace(settings, ca_file=str(trusted), attempt_ms=5_000, deadline_ms=5_000)

    def renew() -> None:
        part = tmp_path / "part"
        part.write_bytes(right)
        part.replace(trusted)

    async def body() -> None:
        store = S3Store(trusting, log(), CLOCK.now)
        with pytest.raises(StorageFailed):
            await store.put("b/1", [b"small"])
        renew()
        await store.put("b/1", [b"small"])
        assert await store.get("b/1", 0, 5) == b"small"
        await store.close()

    asyncio.run(body())
