"""A log whose objects are on S3, through a proxy that spoils a part of what passes."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.fault_proxy import NOTHING, Request, Spoil
from tests.integration.s3.conftest import Behind

from anabranch.apps import up
from anabranch.apps.settings import Settings
from anabranch.apps.up import Endpoint
from anabranch.client import aio
from anabranch.client.bolt.log import Log
from anabranch.core.errors import RecordsDamaged
from anabranch.core.limits import Limits
from anabranch.shell.objects.s3.store import S3Store

RECORDS = 120


@pytest.fixture
def play(behind: Behind, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Runs a body with a log of a server of its own, which keeps nothing in its cache."""

    def run(body: Callable[[Log, S3Store], Awaitable[None]]) -> None:
        async def with_store(store: S3Store) -> None:
            monkeypatch.setattr(up, "MemoryStore", lambda: store)
            limits = Limits(cache_bytes=1, linger_ms=0)
            settings = Settings(memory=True, port=0, http_port=-1, limits=limits)
            began: asyncio.Future[Endpoint] = asyncio.get_running_loop().create_future()
            stop = asyncio.Event()
            serving = asyncio.create_task(up.serve(settings, began.set_result, stop=stop))
            await asyncio.wait((serving, began), return_when=asyncio.FIRST_COMPLETED)
            assert began.done(), serving.result()
            async with aio.connect(f"anabranch://{began.result().frames}") as service:
                await body(await service.create("orders"), store)
            stop.set()
            await serving

        behind.play(with_store)

    return run


async def appended(log: Log) -> list[bytes]:
    values = [b"%d" % n for n in range(RECORDS)]
    receipts = await asyncio.gather(*(log.append(value) for value in values))
    assert sorted(receipt.position or 0 for receipt in receipts) == list(range(RECORDS))
    return values


async def read(log: Log) -> list[bytes | None]:
    return [record.value async for record in log.read(0, count=RECORDS)]


def test_bytes_that_were_spoilt_on_their_way_are_read_again_and_never_delivered(
    play: Callable[..., None], behind: Behind
) -> None:
    async def body(log: Log, store: S3Store) -> None:
        values = await appended(log)
        gets = 0

        def flip(request: Request) -> Spoil:
            nonlocal gets
            gets += request.method == "GET"
            return Spoil(flipped=30) if request.method == "GET" and gets % 2 else NOTHING

        behind.proxy.spoil = flip
        assert sorted(filter(None, await read(log))) == sorted(values)
        assert gets >= 2

    play(body)


def test_what_is_spoilt_for_good_is_named_and_not_delivered(
    play: Callable[..., None], behind: Behind
) -> None:
    async def body(log: Log, store: S3Store) -> None:
        await appended(log)
        behind.proxy.spoil = lambda request: (
            Spoil(flipped=30) if request.method == "GET" else NOTHING
        )
        with pytest.raises(RecordsDamaged, match=r"object .*/data/.*checksum"):
            await read(log)

    play(body)


def test_nothing_acknowledged_is_lost_or_doubled_when_every_third_answer_is(
    play: Callable[..., None], behind: Behind
) -> None:
    fates = (NOTHING, Spoil(lost=True), Spoil(status=503, code="SlowDown"))
    behind.proxy.spoil = lambda request: fates[request.number % 3]

    async def body(log: Log, store: S3Store) -> None:
        values = await appended(log)
        assert sorted(filter(None, await read(log))) == sorted(values)
        counters = store.meter.counters
        assert counters.failures == 0
        assert counters.refusals > 0

    play(body)
