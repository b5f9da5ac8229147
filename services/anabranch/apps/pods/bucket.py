"""A process that works on the object store, and is traced: metadata members and brokers."""

import asyncio
from typing import TypeVar

from anabranch.apps.pods.bolt_settings import PodSettings
from anabranch.apps.pods.pod import Pod
from anabranch.core.health import Standing
from anabranch.shell.objects.s3.admin import open_bucket
from anabranch.shell.objects.s3.store import S3Store
from anabranch.shell.telemetry.otlp import SpanExporter
from anabranch.shell.telemetry.tracing import Choice

C = TypeVar("C", bound=PodSettings)


class StorePod(Pod[C]):
    async def open_store(self) -> S3Store:
        """The bucket, looked at before anything is put in it."""
        settings, log, now = self.settings.s3, self.log, self.clock.now
        await self.patiently(
            "the object store", lambda: asyncio.to_thread(open_bucket, settings, log, now())
        )
        store = S3Store(settings, log, now)
        self.stack.push_async_callback(store.close)
        self.vitals.counters["s3"] = store.meter.counters
        self.vitals.gauges["s3"] = store.gauges
        self.vitals.obstacles.append(lambda: _store_obstacle(store))
        return store

    def tracing(self) -> tuple[Choice, SpanExporter] | None:
        """What is traced, and where that goes; None if nothing is."""
        settings = self.settings
        if not settings.otlp_endpoint:
            return None
        service = f"anabranch-{self.kind}"
        exporter = SpanExporter(settings.otlp_endpoint, service, settings.node, self.log)
        self.stack.push_async_callback(asyncio.to_thread, exporter.close)
        self.vitals.counters["spans"] = exporter.counters
        return Choice(settings.cluster, settings.trace_one_in), exporter


def _store_obstacle(store: S3Store) -> str | None:
    if store.standing is Standing.UNAVAILABLE:
        return "the object store is unavailable"
    return None
