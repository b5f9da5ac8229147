"""What brokers, members and shards say of themselves, read from their metrics."""

import asyncio
import time
from collections.abc import Iterable

import aiohttp

from anabranch_operator.plan.engine.events import Measured, Vitals
from anabranch_operator.plan.engine.polls import Target

ANSWER_S = 3.0
AT_ONCE = 16
_BYTES_MAX = 1 << 20

_LEADING = "anabranch_member_leading"
_JOURNALED, _INDEX = "anabranch_member_journaled", "anabranch_member_index"
_APPENDED = "anabranch_broker_appends_bytes_total"
_CONFIRMED = "anabranch_shard_confirmed_total"
_VOIDED = "anabranch_shard_voided_total"
_ETCD_FULL = "anabranch_etcd_full"
_READ = frozenset({_LEADING, _JOURNALED, _INDEX, _APPENDED, _CONFIRMED, _VOIDED, _ETCD_FULL})


class Scraper:
    """A rate is known from the second reading on."""

    def __init__(self) -> None:
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=ANSWER_S))
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._before: dict[str, tuple[float, float]] = {}
        """Of each pod: bytes appended, and when they were read."""

    async def close(self) -> None:
        await self._session.close()

    async def measure(self, targets: Iterable[Target]) -> Measured:
        asked = list(targets)
        told = await asyncio.gather(*(self._ask(each) for each in asked))
        found = {each.uid: vitals for each, vitals in zip(asked, told, strict=True) if vitals}
        self._before = {uid: kept for uid, kept in self._before.items() if uid in found}
        return Measured(found)

    async def _ask(self, target: Target) -> Vitals | None:
        host = f"[{target.host}]" if ":" in target.host else target.host
        try:
            async with (
                self._turns,
                self._session.get(f"http://{host}:{target.port}/metrics") as response,
            ):
                if response.status != 200:
                    return None
                body = await response.content.read(_BYTES_MAX)
        except (aiohttp.ClientError, OSError, TimeoutError):
            return None
        return self._understood(target.uid, figures(body.decode(errors="replace")))

    def _understood(self, uid: str, told: dict[str, float]) -> Vitals:
        now, appended = time.monotonic(), told.get(_APPENDED, 0.0)
        before = self._before.get(uid)
        self._before[uid] = (appended, now)
        rate = 0.0
        if before is not None and now > before[1]:
            rate = max(0.0, appended - before[0]) / (now - before[1])
        behind = told.get(_JOURNALED, 0.0) - told.get(_INDEX, 0.0)
        return Vitals(
            leading=bool(told.get(_LEADING, 0.0)),
            behind=max(0, round(behind)),
            append_bytes_per_s=rate,
            confirmed=round(told.get(_CONFIRMED, 0.0)),
            voided=round(told.get(_VOIDED, 0.0)),
            etcd_full=bool(told.get(_ETCD_FULL, 0.0)),
        )


def figures(text: str) -> dict[str, float]:
    """Those that are read, out of a page of metrics; none of them has labels."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name in _READ:
            found[name] = float(value)
    return found
