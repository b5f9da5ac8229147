"""The store on a bucket, against a server that fails as it is told."""

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

import pytest
from tests.unit.shell.objects.scripted_s3 import Answer, ScriptedS3, Stored, error

from anabranch.core.errors import CorruptObject, ObjectExists, ObjectMissing, StorageFailed
from anabranch.core.health import DEGRADED_AFTER, HEALTHY_AFTER, UNAVAILABLE_AFTER, Standing
from anabranch.shell.objects.s3.store import PAGE, S3Store
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.telemetry.log import Log

PATIENCE_S = 60.0
Body = Callable[[S3Store], Awaitable[None]]
UNSURE = [
    error(500, "InternalError"),
    error(502, "BadGateway"),
    error(503, "SlowDown"),
    error(503, "ServiceUnavailable"),
    error(429, "Throttling"),
    error(408, "RequestTimeout"),
    error(409, "OperationAborted"),
    error(400, "BadDigest"),
    error(400, "IncompleteBody"),
    Answer(500, b"<html>a proxy's own words</html>"),
    Answer(200, b"", cut=0),
]


@pytest.fixture
def s3() -> Iterator[ScriptedS3]:
    with ScriptedS3().serving() as serving:
        yield serving


@asynccontextmanager
async def opened(s3: ScriptedS3, **settings: object) -> AsyncIterator[S3Store]:
    clock = Clock()
    store = S3Store(s3.settings(**settings), Log(clock.now, stream=io.StringIO()), clock.now)
    try:
        yield store
    finally:
        await store.close()


def run(s3: ScriptedS3, body: Body, **settings: object) -> None:
    async def scene() -> None:
        async with opened(s3, **settings) as store:
            await asyncio.wait_for(body(store), PATIENCE_S)

    asyncio.run(scene())


ATTEMPTS = [
    (method, answer)
    for method in ("PUT", "GET", "POST", "HEAD")
    for answer in UNSURE
    # An answer to HEAD has no body, and so no code.
    if method != "HEAD" or answer.status not in {400, 409}
]


@pytest.mark.parametrize(
    ("method", "answer"), ATTEMPTS, ids=[f"{one}-{UNSURE.index(two)}" for one, two in ATTEMPTS]
)
def test_what_another_attempt_may_mend_is_never_seen(
    s3: ScriptedS3, method: str, answer: Answer
) -> None:
    async def body(store: S3Store) -> None:
        s3.fail(answer, method=method, times=2)
        await store.put("c/1", [b"ab", b"cd"])
        assert await store.size("c/1") == 4
        assert await store.get("c/1", 1, 2) == b"bc"
        assert [each.name for each in await store.list("c/")] == ["c/1"]
        await store.delete(["c/1"])
        assert not s3.faults, "all were met"
        assert store.meter.counters.retries == 2
        assert store.standing is Standing.HEALTHY

    run(s3, body)
    assert s3.objects == {}


def test_a_put_whose_answer_was_lost_is_made_once(s3: ScriptedS3) -> None:
    async def body(store: S3Store) -> None:
        s3.lost.append("PUT")
        await store.put("c/1", [b"mine"])
        assert s3.objects["c/1"].content == b"mine"
        assert [method for method, _ in s3.asked] == ["PUT", "PUT", "HEAD"]

    run(s3, body)


def test_anothers_object_is_never_taken_for_ours(s3: ScriptedS3) -> None:
    async def body(store: S3Store) -> None:
        await store.put("c/1", [b"theirs"])
        s3.fail(error(500, "InternalError"), method="PUT")
        with pytest.raises(ObjectExists, match="c/1"):
            await store.put("c/1", [b"theirs"])
        assert s3.objects["c/1"].content == b"theirs"

    run(s3, body)


def test_what_is_missing_is_told_from_a_bucket_that_is_gone(s3: ScriptedS3) -> None:
    async def body(store: S3Store) -> None:
        for ask in (store.size("c/none"), store.get("c/none", 0, 1), store.get("c/none", 0, 0)):
            with pytest.raises(ObjectMissing, match="c/none"):
                await ask
        await store.delete(["c/none"])
        s3.fail(error(404, "NoSuchBucket"), method="GET")
        with pytest.raises(StorageFailed, match="NoSuchBucket"):
            await store.get("c/none", 0, 1)
        s3.fail(error(404, "NoSuchBucket"), method="HEAD")
        s3.fail(error(404, "NoSuchBucket"), method="GET")
        with pytest.raises(StorageFailed):
            await store.size("c/none")

    run(s3, body)


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        (403, "AccessDenied", "403 AccessDenied"),
        (403, "SignatureDoesNotMatch", "SignatureDoesNotMatch"),
        (403, "RequestTimeTooSkewed", "this machine's clock is off"),
        (400, "InvalidArgument", "InvalidArgument"),
    ],
)
def test_a_refusal_that_nothing_mends_is_told_at_once_in_the_stores_words(
    s3: ScriptedS3, status: int, code: str, said: str
) -> None:
    async def body(store: S3Store) -> None:
        s3.fail(error(status, code), method="GET")
        with pytest.raises(StorageFailed, match=said) as refused:
            await store.get("c/1", 0, 1)
        assert "bucket b at" in refused.value.message
        assert "after 1 attempts" in refused.value.message

    run(s3, body)


def test_an_object_that_ends_early_is_damage_and_named(s3: ScriptedS3) -> None:
    async def body(store: S3Store) -> None:
        await store.put("c/1", [b"abc"])
        with pytest.raises(CorruptObject, match=r"bytes 1\.\.9 were asked, it ends at 3"):
            await store.get("c/1", 1, 8)
        with pytest.raises(CorruptObject, match="it ends at 7"):
            await store.get("c/1", 7, 1)
        assert store.standing is Standing.HEALTHY, "the store has answered"

    run(s3, body)


def test_a_body_that_is_cut_on_its_way_is_read_again(s3: ScriptedS3) -> None:
    async def body(store: S3Store) -> None:
        content = bytes(range(256)) * 100
        await store.put("c/1", [content])
        told = {"Content-Range": f"bytes 0-{len(content) - 1}/{len(content)}"}
        s3.fail(Answer(206, content, told, cut=1_000), method="GET")
        assert await store.get("c/1", 0, len(content)) == content
        assert store.meter.counters.retries == 1

    run(s3, body)


def test_a_call_ends_by_its_deadline_with_the_last_reason(s3: ScriptedS3) -> None:
    async def body(store: S3Store) -> None:
        s3.fail(error(503, "SlowDown", "less, please"), method="PUT", times=100_000)
        with pytest.raises(StorageFailed, match="503 SlowDown less, please") as late:
            await store.put("c/1", [b"x"])
        assert late.value.__cause__ is None
        assert store.meter.counters.throttled >= 1
        assert store.meter.counters.failures == 1

    run(s3, body, attempt_ms=200, deadline_ms=300)


def test_a_server_that_says_nothing_is_given_up_by_the_deadline(s3: ScriptedS3) -> None:
    silent = asyncio.Event()

    async def body(store: S3Store) -> None:
        async def mute(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await silent.wait()
            writer.close()

        server = await asyncio.start_server(mute, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with opened(
            s3, endpoint=f"http://127.0.0.1:{port}", attempt_ms=100, deadline_ms=250
        ) as deaf:
            with pytest.raises(StorageFailed, match=f"127.0.0.1:{port}"):
                await deaf.get("c/1", 0, 1)
        silent.set()
        server.close()

    run(s3, body)


def test_an_outage_degrades_ends_looks_and_heals_step_by_step(s3: ScriptedS3) -> None:
    async def body(store: S3Store) -> None:
        await store.put("c/1", [b"x"])
        s3.fail(error(403, "AccessDenied"), method="GET", times=UNAVAILABLE_AFTER)
        seen: list[Standing] = []
        for _ in range(UNAVAILABLE_AFTER):
            with pytest.raises(StorageFailed):
                await store.get("c/1", 0, 1)
            seen.append(store.standing)
        assert seen.index(Standing.DEGRADED) == DEGRADED_AFTER - 1
        assert seen[-1] is Standing.UNAVAILABLE
        assert store.gauges().failures_in_a_row == UNAVAILABLE_AFTER
        assert await store.get("c/1", 0, 1) == b"x", "one is let through to look"
        for _ in range(HEALTHY_AFTER):
            await store.get("c/1", 0, 1)
        assert (store.gauges().standing, store.gauges().failures_in_a_row) == (0, 0)

    run(s3, body)


def test_an_empty_stretch_of_an_object_that_is_there_is_empty(s3: ScriptedS3) -> None:
    async def body(store: S3Store) -> None:
        await store.put("c/1", [])
        assert await store.get("c/1", 0, 0) == b""
        assert await store.size("c/1") == 0

    run(s3, body)


def test_names_of_others_are_left_out_and_pages_join(s3: ScriptedS3) -> None:
    async def body(store: S3Store) -> None:
        names = [f"c/data/{n:05}" for n in range(PAGE + 7)]
        for name in (*names, "c/.hidden", "c/with space", "d/1"):
            s3.objects[name] = Stored(b"x")
        assert [each.name for each in await store.list("c/")] == names
        assert [each.name for each in await store.list("c/data/0000")] == names[:10]
        assert await store.list("nowhere/") == []

    run(s3, body)


def test_many_are_deleted_by_the_page_and_all_at_once(s3: ScriptedS3) -> None:
    async def body(store: S3Store) -> None:
        await store.put("c/1", [b"x"])
        names = [f"c/{n}" for n in range(2 * PAGE + 1)]
        s3.asked.clear()
        await store.delete(names)
        assert [method for method, _ in s3.asked] == ["POST"] * 3
        assert s3.objects == {}
        await store.delete([])

    run(s3, body)


def test_a_prefix_is_before_every_name_and_never_seen(s3: ScriptedS3) -> None:
    async def body(store: S3Store) -> None:
        await store.put("c/1", [b"x"])
        assert list(s3.objects) == ["deep/er/c/1"]
        assert [each.name for each in await store.list()] == ["c/1"]
        assert await store.get("c/1", 0, 1) == b"x"
        await store.delete(["c/1"])
        assert s3.objects == {}

    run(s3, body, prefix="deep/er")


def test_what_is_asked_and_moved_is_counted(s3: ScriptedS3) -> None:
    async def body(store: S3Store) -> None:
        await store.put("c/1", [b"12345"])
        await store.get("c/1", 0, 3)
        await store.size("c/1")
        counters = store.meter.counters
        assert (counters.failures, counters.retries, counters.refusals) == (0, 0, 0)
        s3.fail(error(403, "AccessDenied"), method="GET")
        with pytest.raises(StorageFailed):
            await store.get("c/1", 0, 3)
        assert (counters.failures, counters.refusals) == (1, 1)

    run(s3, body)
