"""A call to the store: attempts with pauses between them, until an answer or the deadline.

Every call may be repeated: reads and deletions change nothing twice, and a PUT is create-only and
known again by its mark (docs/decisions/0012-s3.md).
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from anabranch.core.errors import StorageFailed
from anabranch.core.health import Health
from anabranch.core.types import MS, Nanoseconds
from anabranch.shell.objects.s3.meter import Meter
from anabranch.shell.objects.s3.responses import CLIENT_ERRORS, Fault, Verdict, understand
from anabranch.shell.objects.s3.settings import S3Settings
from anabranch.shell.objects.s3.trace import Call, Trace
from anabranch.shell.runtime.randomness import randbits
from anabranch.shell.telemetry.log import Log

_Found = TypeVar("_Found")
_NS = 1_000_000_000


class Asking:
    def __init__(
        self,
        settings: S3Settings,
        meter: Meter,
        trace: Trace,
        log: Log,
        now: Callable[[], Nanoseconds],
    ) -> None:
        self.health = Health()
        self._settings = settings
        self._meter = meter
        self._trace = trace
        self._log = log
        self._now = now

    async def ask(self, call: Call, attempt: Callable[[], Awaitable[_Found]]) -> _Found | Fault:
        """What was found, or the store's no; StorageFailed if it has neither in time."""
        outcome = "given up"
        try:
            async with asyncio.timeout(self._settings.deadline_ms / 1_000):
                found = await self._until_answered(call, attempt)
            outcome = found.verdict.name.lower() if isinstance(found, Fault) else "done"
        except TimeoutError:
            raise self.failed(call) from None
        else:
            return found
        finally:
            self._trace.ended(call, self._now(), outcome)

    def failed(self, call: Call) -> StorageFailed:
        """What is known of the outcome is that it is unknown."""
        self._meter.counters.failures += 1
        reason = call.reason or "it did not answer"
        took = (self._now() - call.began) // MS
        return StorageFailed(
            f"{call.kind} of {call.name} in {self._settings.where}",
            f"{reason}, after {call.attempts} attempts in {took} ms",
        )

    async def _until_answered(
        self, call: Call, attempt: Callable[[], Awaitable[_Found]]
    ) -> _Found | Fault:
        while True:
            await self._turn()
            call.attempts += 1
            self._meter.asked(call.kind)
            try:
                found = await attempt()
            except CLIENT_ERRORS as error:
                fault = understand(error)
            else:
                self._went_well()
                return found
            call.reason = fault.reason
            if fault.verdict not in (Verdict.AGAIN, Verdict.REFUSED):
                self._went_well()
                return fault
            self._went_wrong(fault)
            if fault.verdict is Verdict.REFUSED:
                return fault
            self._meter.counters.retries += 1
            await asyncio.sleep(self._pause_s(call.attempts))

    async def _turn(self) -> None:
        """While the store is unavailable, only some may ask, and who waits looks again by then."""
        while True:
            wait = self.health.wait(self._now())
            if not wait:
                return
            await asyncio.sleep(wait / _NS * (1 + _fraction() / 4))

    def _pause_s(self, attempts: int) -> float:
        """Anything up to twice the last one's most, so that those who failed together part."""
        settings = self._settings
        most_ms = min(settings.retry_ms << min(attempts - 1, 20), settings.retry_ms_max)
        return most_ms / 1_000 * _fraction()

    def _went_well(self) -> None:
        before = self.health.standing
        self.health.succeeded()
        if self.health.standing is not before:
            self._log.info("the object store answers", standing=self.health.standing.name.lower())

    def _went_wrong(self, fault: Fault) -> None:
        before = self.health.standing
        self.health.failed(self._now())
        self._meter.counters.refusals += 1
        self._meter.counters.throttled += fault.throttled
        if self.health.standing is not before:
            standing = self.health.standing.name.lower()
            self._log.warning("the object store fails", standing=standing, reason=fault.reason)


def _fraction() -> float:
    return randbits(32) / (1 << 32)
