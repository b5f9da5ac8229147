"""A store behind a proxy that spoils what a test names."""

import io
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

import pytest
import uvloop
from msgspec.structs import replace
from tests.fault_proxy import FaultProxy
from tests.servers import bucket_of, s3

from anabranch.apps.processes.servers import S3Server
from anabranch.shell.objects.s3.settings import S3Settings
from anabranch.shell.objects.s3.store import S3Store
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.telemetry.log import Log, LogFormat

__all__ = ["s3"]


@dataclass(slots=True)
class Behind:
    """A fresh bucket, seen through the proxy."""

    proxy: FaultProxy
    settings: S3Settings
    said: io.StringIO

    def play(self, body: Callable[[S3Store], Awaitable[None]], **changed: object) -> None:
        async def opened() -> None:
            clock = Clock()
            log = Log(clock.now, LogFormat.JSON, self.said)
            store = S3Store(replace(self.settings, **changed), log, clock.now)
            try:
                await body(store)
            finally:
                await store.close()

        uvloop.run(opened())


@pytest.fixture
def behind(s3: S3Server) -> Iterator[Behind]:
    with FaultProxy(s3.address) as proxy:
        patient = replace(bucket_of(s3), attempt_ms=30_000, deadline_ms=60_000)
        settings = replace(patient, endpoint=proxy.endpoint, retry_ms=1, retry_ms_max=20)
        yield Behind(proxy, settings, io.StringIO())
