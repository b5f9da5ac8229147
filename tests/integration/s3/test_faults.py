"""What S3, or the way to it, may do to a call, and what the store makes of it."""

import asyncio
import json
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from tests.fault_proxy import NOTHING, FaultProxy, Request, Spoil
from tests.integration.s3.conftest import Behind

from anabranch.apps.processes.servers import S3Server
from anabranch.core.errors import (
    CorruptObject,
    ObjectExists,
    ObjectMissing,
    StorageFailed,
)
from anabranch.core.health import UNAVAILABLE_AFTER, Standing
from anabranch.core.limits import MIB
from anabranch.shell.objects.s3.store import S3Store
from anabranch.shell.runtime import failpoints

BUSY = Spoil(status=503, code="SlowDown")
CONTENT = bytes(range(256)) * 40


def first(spoil: Spoil, method: str, times: int = 1) -> Callable[[Request], Spoil]:
    """Spoil the first requests of this method, and no other."""
    seen = count()
    return lambda request: spoil if request.method == method and next(seen) < times else NOTHING


def methods(behind: Behind) -> list[str]:
    return [request.method for request in behind.proxy.requests]


@pytest.mark.parametrize(
    "spoil",
    [
        BUSY,
        Spoil(status=500, code="InternalError"),
        Spoil(status=400, code="RequestTimeout"),
        Spoil(status=409, code="ConditionalRequestConflict"),
        Spoil(status=429, code="TooManyRequests"),
    ],
    ids=lambda spoil: spoil.code,
)
def test_what_another_attempt_may_mend_is_tried_again(behind: Behind, spoil: Spoil) -> None:
    async def body(store: S3Store) -> None:
        behind.proxy.spoil = first(spoil, "PUT", 2)
        await store.put("a/1", [CONTENT])
        behind.proxy.spoil = first(spoil, "GET", 2)
        assert await store.get("a/1", 3, 500) == CONTENT[3:503]
        assert store.meter.counters.refusals == store.meter.counters.retries == 4
        assert (store.meter.counters.puts, store.meter.counters.gets) == (3, 3)

    behind.play(body)


def test_one_refusal_in_a_hundred_is_never_seen(behind: Behind) -> None:
    behind.proxy.spoil = lambda request: BUSY if request.number % 100 == 7 else NOTHING

    async def body(store: S3Store) -> None:
        for n in range(150):
            await store.put(f"a/{n}", [b"%d" % n])
        for n in range(150):
            assert await store.get(f"a/{n}", 0, len(str(n))) == b"%d" % n
        assert store.meter.counters.throttled == 3
        assert store.standing is Standing.HEALTHY

    behind.play(body)


def test_a_put_whose_answer_was_lost_knows_its_own_object_again(behind: Behind) -> None:
    behind.proxy.spoil = first(Spoil(lost=True), "PUT")

    async def body(store: S3Store) -> None:
        await store.put("a/1", [CONTENT])
        assert methods(behind) == ["PUT", "PUT", "HEAD"]
        assert await store.get("a/1", 0, len(CONTENT)) == CONTENT

    behind.play(body)


def test_a_put_whose_answer_was_lost_never_takes_anothers_object_for_its_own(
    behind: Behind,
) -> None:
    async def body(store: S3Store) -> None:
        await store.put("a/1", [CONTENT])
        behind.proxy.spoil = first(BUSY, "PUT")
        with pytest.raises(ObjectExists):
            await store.put("a/1", [CONTENT])
        assert methods(behind) == ["PUT", "PUT", "PUT", "HEAD"]

    behind.play(body)


def test_an_upload_in_parts_survives_lost_answers(behind: Behind) -> None:
    """The one to its completion is the one that can't be asked for again."""
    content = bytes(5 * MIB) + b"tail"
    lost = Spoil(lost=True)
    ended = count()
    behind.proxy.spoil = lambda request: (
        lost
        if "uploadId" in request.path and request.method == "POST" and not next(ended)
        else NOTHING
    )

    async def body(store: S3Store) -> None:
        await store.put("a/1", [content[:1000], content[1000:]])
        assert await store.size("a/1") == len(content)
        assert await store.get("a/1", 5 * MIB - 2, 6) == content[-6:]
        assert next(ended) >= 1
        with pytest.raises(ObjectExists):
            await store.put("a/1", [content])

    behind.play(body, multipart_bytes_min=MIB, part_bytes=5 * MIB)


def test_a_damaged_upload_is_refused_by_the_store_and_sent_again(behind: Behind) -> None:
    behind.proxy.spoil = first(Spoil(flipped_request=100), "PUT")

    async def body(store: S3Store) -> None:
        await store.put("a/1", [CONTENT[:5000], CONTENT[5000:]])
        assert methods(behind) == ["PUT", "PUT"]
        assert await store.get("a/1", 0, len(CONTENT)) == CONTENT

    behind.play(body)


@pytest.mark.parametrize("spoil", [Spoil(kept=100), Spoil(kept=0)], ids=["short", "none"])
def test_a_body_that_ends_early_is_read_again(behind: Behind, spoil: Spoil) -> None:
    async def body(store: S3Store) -> None:
        await store.put("a/1", [CONTENT])
        behind.proxy.spoil = first(spoil, "GET")
        assert await store.get("a/1", 0, len(CONTENT)) == CONTENT
        assert methods(behind) == ["PUT", "GET", "GET"]

    behind.play(body)


def test_a_body_that_never_ends_is_given_up_and_read_again(behind: Behind) -> None:
    async def body(store: S3Store) -> None:
        await store.put("a/1", [CONTENT])
        behind.proxy.spoil = first(Spoil(trickled=10), "GET")
        assert await store.get("a/1", 0, len(CONTENT)) == CONTENT
        assert methods(behind)[-2:] == ["GET", "GET"]

    behind.play(body, attempt_ms=5_000, deadline_ms=60_000)


def test_an_object_that_is_shorter_than_it_should_be_is_damage_and_no_outage(
    behind: Behind,
) -> None:
    async def body(store: S3Store) -> None:
        await store.put("a/1", [b"12345"])
        with pytest.raises(CorruptObject, match=r"a/1 .*it ends at 5"):
            await store.get("a/1", 1, 10)
        with pytest.raises(CorruptObject, match=r"a/1 "):
            await store.get("a/1", 7, 1)
        assert methods(behind) == ["PUT", "GET", "GET"]

    behind.play(body)


def test_a_call_ends_by_its_deadline_whatever_the_store_does(behind: Behind) -> None:
    behind.proxy.spoil = lambda _: BUSY

    async def body(store: S3Store) -> None:
        with pytest.raises(StorageFailed, match=r"put of a/1 in bucket .* attempts in \d+ ms"):
            await store.put("a/1", [CONTENT])
        assert store.meter.counters.failures == 1

    behind.play(body, attempt_ms=300, deadline_ms=300)


def test_an_outage_is_said_once_and_so_is_its_end(behind: Behind) -> None:
    async def body(store: S3Store) -> None:
        await store.put("a/0", [b"x"])
        behind.proxy.spoil = first(BUSY, "PUT", UNAVAILABLE_AFTER + 2)
        await store.put("a/1", [b"x"])
        assert store.standing is Standing.DEGRADED
        for n in range(2, 12):
            await store.put(f"a/{n}", [b"x"])
        assert store.standing is Standing.HEALTHY
        assert store.gauges().standing == 0

    behind.play(body, deadline_ms=60_000)
    lines = map(json.loads, behind.said.getvalue().splitlines())
    told = [(line["level"], line["standing"]) for line in lines]
    outage = [("warning", "degraded"), ("warning", "unavailable")]
    assert told == [*outage, ("info", "degraded"), ("info", "healthy")]


def test_a_bucket_that_is_gone_is_an_outage_and_no_damage(behind: Behind) -> None:
    async def body(store: S3Store) -> None:
        for ask in (store.get("a/1", 0, 1), store.size("a/1"), store.put("a/1", [b"x"])):
            with pytest.raises(StorageFailed, match="NoSuchBucket"):
                await ask

    behind.play(body, bucket="another-bucket")


def test_credentials_that_end_are_an_outage(behind: Behind) -> None:
    async def body(store: S3Store) -> None:
        with pytest.raises(StorageFailed, match="403 SignatureDoesNotMatch"):
            await store.get("a/1", 0, 1)

    behind.play(body, secret_key="wrong")


def test_a_dead_endpoint_is_named(behind: Behind) -> None:
    async def body(store: S3Store) -> None:
        with pytest.raises(StorageFailed, match=r"http://127.0.0.1:9 .*Connection refused"):
            await store.get("a/1", 0, 1)

    behind.play(body, endpoint="http://127.0.0.1:9", attempt_ms=2_000, deadline_ms=2_000)


def test_every_call_is_traced_if_the_setting_says_so(behind: Behind) -> None:
    async def body(store: S3Store) -> None:
        await store.put("a/1", [b"x"])
        behind.proxy.spoil = first(BUSY, "GET")
        await store.get("a/1", 0, 1)
        with pytest.raises(ObjectMissing):
            await store.get("a/2", 0, 1)

    behind.play(body)
    assert behind.said.getvalue() == ""
    behind.play(body, trace=True, prefix="again")
    lines = [json.loads(line) for line in behind.said.getvalue().splitlines()]
    told = [(line["kind"], line["object"], line["outcome"], line["attempts"]) for line in lines]
    assert told == [
        ("put", "a/1", "done", 1),
        ("get", "a/1", "done", 2),
        ("get", "a/2", "missing", 1),
    ]


def test_failpoints_of_the_store_are_reached(behind: Behind) -> None:
    async def body(store: S3Store) -> None:
        for place in ("store.put.before", "store.put.after", "store.get.before"):
            failpoints.arm(f"{place}=drop")
            with pytest.raises(StorageFailed, match="a/1"):
                await (store.get("a/1", 0, 1) if "get" in place else store.put("a/1", [b"x"]))
            failpoints.arm("")
        assert methods(behind) == ["PUT"]
        assert await store.get("a/1", 0, 1) == b"x"

    behind.play(body)


def test_idle_connections_that_died_in_an_outage_do_not_make_it_last(
    behind: Behind, tmp_path: Path
) -> None:
    """While the store is unavailable one call at a time looks: not through each of them in turn."""
    own = S3Server(tmp_path / "s3")
    own.start()
    try:
        own.make_bucket("bucket")
        with FaultProxy(own.address) as proxy:

            async def body(store: S3Store) -> None:
                await store.put("a/1", [CONTENT])
                await asyncio.gather(*(store.get("a/1", 0, 500) for _ in range(64)))
                own.kill()
                own.start()
                assert await store.get("a/1", 0, 500) == CONTENT[:500]

            Behind(proxy, behind.settings, behind.said).play(
                body,
                bucket="bucket",
                endpoint=proxy.endpoint,
                access_key=own.access_key,
                secret_key=own.secret_key,
            )
    finally:
        own.kill()
