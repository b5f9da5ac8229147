"""Both clients against the real server: every verb, and a server that is killed under them."""

import asyncio
import math
import re
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.integration.cli_server import Server

import anabranch
from anabranch import Confirm, Deliver, Fail, OnPromote, Quota, aio
from anabranch.core.errors import (
    BadRequest,
    ForkMoved,
    LogExists,
    NotPromotable,
    OutOfRange,
    Promoted,
    ReadBlocked,
    ReceiptPending,
    RecordTooLarge,
    Squashed,
    Unavailable,
    UnknownLog,
)
from anabranch.core.records.set_sum import set_sum


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server.started(tmp_path_factory.mktemp("client")) as server:
        yield server


@pytest.fixture
def service(server: Server) -> Iterator[anabranch.Service]:
    with anabranch.connect(server.url) as service:
        yield service


def values(log: anabranch.Log) -> list[bytes | None]:
    return [record.value for record in log.read()]


def test_a_record_comes_back_as_it_was_given(service: anabranch.Service) -> None:
    log = service.create("whole", why="to see")
    moment = datetime(2024, 5, 1, tzinfo=UTC)
    assert log.append(b"v", key=b"k", headers=[("a", b"1"), ("a", None)], timestamp=moment) == (
        0,
        None,
    )
    assert log.append(None).position == 1
    first, second = log.read(0, count=10)
    assert (first.position, first.value, first.key) == (0, b"v", b"k")
    assert first.headers == (("a", b"1"), ("a", None))
    assert first.timestamp == moment.timestamp() * 1_000
    assert first.origin == (log.id, 0)
    assert second.value is None
    assert second.timestamp > first.timestamp
    assert log.describe().why == "to see"


def test_every_way_to_append_keeps_the_order(service: anabranch.Service) -> None:
    log = service.create("ways")
    handles = [log.append_nowait(b"%d" % number) for number in range(1_000)]
    assert log.append(b"1000").position == 1_000
    many = log.append_many(b"%d" % number for number in range(1_001, 1_501))
    batch = next(service.log("ways", engine="bolt").read_batches(0, count=3))
    assert batch.count <= 3
    again = log.append_batch(bytes(batch.raw))
    assert [handle.result().position for handle in handles] == list(range(1_000))
    assert [done.position for done in many] == list(range(1_001, 1_501))
    assert again.position == 1_501
    found = values(log)
    assert found[:1_501] == [b"%d" % number for number in range(1_501)]
    assert found[1_501] == b"0"


def test_reads_stop_where_they_are_told(service: anabranch.Service) -> None:
    log = service.create("stops")
    log.append_many([b"%d" % number for number in range(100)])
    assert [record.position for record in log.read(40, count=3)] == [40, 41, 42]
    assert [record.position for record in log.read(98)] == [98, 99]
    assert list(log.read(100)) == []
    assert sum(batch.count for batch in log.read_batches(10, count=7)) == 7
    with pytest.raises(OutOfRange):
        next(log.read(101))
    with pytest.raises(BadRequest):
        next(log.read(-1))
    appended = threading.Thread(target=lambda: log.append(b"late"))
    reading = log.read(100, wait=30)
    appended.start()
    assert next(reading).value == b"late"
    appended.join()


def test_large_reads_come_in_pages(service: anabranch.Service) -> None:
    log = service.create("pages")
    contents = [bytes([number % 251]) * 10_000 for number in range(500)]
    log.append_many(contents)
    assert values(log) == contents


def test_fork_write_promote(service: anabranch.Service) -> None:
    orders = service.create("orders")
    orders.append_many([b"o0", b"o1"])
    fork = orders.cfork("what-if", promotable=True, ttl=600, why="a guess")
    assert fork.name == "orders--what-if"
    assert fork.append(b"f0").position == 2
    withheld = orders.append(b"o2")
    assert withheld.position is None
    assert withheld.receipt is not None
    with pytest.raises(ReceiptPending):
        withheld.receipt.position(timeout=0)
    with pytest.raises(ReadBlocked, match="orders--what-if"):
        next(orders.read(2))
    assert [record.origin for record in fork.read(2)] == [(fork.id, 2), (orders.id, 2)]
    assert fork.promote().into == "orders"
    assert withheld.receipt.position(timeout=30) == 3
    assert values(orders) == [b"o0", b"o1", b"f0", b"o2"]
    with pytest.raises(Promoted, match="use orders"):
        fork.append(b"late")


def test_a_fork_is_promoted_as_it_was_judged_or_not_at_all(service: anabranch.Service) -> None:
    orders = service.create("judged")
    orders.append(b"o0")
    fork = orders.cfork("guess", promotable=True)
    fork.append_many([b"f0", b"f1"])
    seen = fork.describe().own_records
    orders.append(b"o1")
    fork.append(b"unseen")
    with pytest.raises(ForkMoved, match="3 records of its own where 2 were expected"):
        fork.promote(expect_own=seen)
    with pytest.raises(BadRequest):
        fork.promote(expect_own=-1)
    assert fork.promote(expect_own=3).records == 3


def test_of_an_append_and_a_promotion_at_once_one_is_refused(service: anabranch.Service) -> None:
    orders = service.create("raced")
    promoted = 0
    for turn in range(20):
        fork = orders.cfork(f"fork-{turn}", promotable=True)
        fork.append(b"seen")
        late = fork.append_nowait(b"unseen")
        try:
            assert fork.promote(expect_own=1).records == 1
        except ForkMoved:
            late.result()
            fork.squash()
        else:
            promoted += 1
            with pytest.raises(Promoted):
                late.result()
    assert values(orders) == [b"seen"] * promoted


def test_forks_apart_and_their_difference(service: anabranch.Service) -> None:
    log = service.create("apart")
    log.append_many([b"a", b"b", b"c"])
    past = log.sfork("past", past=0)
    now = log.sfork(at=datetime.now(UTC) + timedelta(hours=1))
    log.append(b"d")
    past.append(b"x")
    assert values(past) == [b"a", b"x"]
    assert values(now) == [b"a", b"b", b"c"]
    difference = log.diff(past)
    assert (difference.shared, difference.only_a, difference.only_b) == (1, [(1, 4)], [(1, 2)])
    past.squash()
    with pytest.raises(Squashed):
        past.tail()
    with pytest.raises(NotPromotable):
        now.promote()


def test_an_audit_computes_the_set_sum_from_what_it_reads(service: anabranch.Service) -> None:
    log = service.create("summed")
    for turn in range(3):
        log.append_many([b"%d" % turn, b"again"])
    fork = log.cfork("fork")
    fork.append(b"own")
    log.append(b"later")
    batches = [batch.raw for batch in fork.read_batches(0, count=8)]
    found = fork.set_sum()
    assert (found.start, found.end, found.summed, found.unsummed) == (0, 8, 8, [])
    assert found.sum == set_sum(reversed(batches))
    assert found.sum != set_sum(batches[1:])
    assert fork.set_sum(6, 7).sum == set_sum(batches[-2:-1])
    assert log.set_sum(7, 7).records == 0
    with pytest.raises(OutOfRange):
        log.set_sum(8)


def test_subscribers_read_ahead_and_are_told_the_decision(service: anabranch.Service) -> None:
    log = service.create("ahead")
    log.append(b"a")
    with log.subscribe(0) as events:
        fork = log.cfork("guess", promotable=True)
        fork.append(b"f")
        log.append(b"b")
        seen = [event for _, event in zip(range(2), events, strict=False)]
        fork.promote()
        seen += [event for _, event in zip(range(3), events, strict=False)]
    told = [
        (event.record.value, event.speculative) if isinstance(event, Deliver) else event
        for event in seen
    ]
    assert told == [(b"a", False), (b"b", True), Fail(1), (b"f", False), (b"b", False)]
    with log.subscribe(0) as events:
        fork = log.cfork("other", promotable=True)
        log.append(b"c")
        seen = [event for _, event in zip(range(4), events, strict=False)]
        fork.squash()
        assert Confirm(4) in [*seen, *events.take(timeout=30)]


def test_a_loop_over_a_subscription_that_is_left_loses_nothing(service: anabranch.Service) -> None:
    log = service.create("left")
    log.append_many([b"%d" % number for number in range(5)])
    with log.subscribe(0) as events:
        seen: list[int] = []
        for wanted in (1, 2, 5):
            for event in events:
                if isinstance(event, Deliver):
                    seen.append(event.record.position)
                if len(seen) == wanted:
                    break
    assert seen == [0, 1, 2, 3, 4]


def test_logs_cursors_and_trimming(service: anabranch.Service) -> None:
    log = service.ensure("kept")
    assert service.ensure("kept").id == log.id
    with pytest.raises(LogExists):
        service.create("kept")
    log.append_many([b"a", b"b", b"c"])
    cursor = log.cursor("reader")
    assert cursor.get() is None
    cursor.commit(2)
    assert cursor.get() == 2
    assert log.cursors() == {"reader": 2}
    cursor.delete()
    assert cursor.get() is None
    log.trim(2)
    assert log.describe().start == 2
    assert log.tail() == 3
    log.cfork("child")
    assert [each.name for each in service.logs("kept")] == ["kept", "kept--child"]
    assert [each.name for each in service.logs(tree="kept")] == ["kept", "kept--child"]
    service.delete("kept", force=True)
    with pytest.raises(Squashed):
        log.append(b"late")
    with pytest.raises(UnknownLog):
        service.log("never-made")


def test_cursors_follow_a_promoted_fork_or_end_with_it(service: anabranch.Service) -> None:
    log = service.create("consumed")
    log.append_many([b"a", b"b"])
    fork = log.cfork("tried", promotable=True)
    log.append(b"c")
    fork.append(b"d")
    log.cursor("billing").commit(2)
    with pytest.raises(OutOfRange):
        log.cursor("billing").commit(3)
    fork.cursor("billing").commit(4)
    fork.cursor("audit").commit(4)
    fork.cursor("draft").commit(4, on_promote=OnPromote.STAY)
    choices = {"billing": OnPromote.FOLLOW, "audit": OnPromote.FOLLOW, "draft": OnPromote.STAY}
    assert fork.cursor_choices() == choices
    assert fork.promote().cursors == ["audit"]
    assert log.cursors() == {"billing": 2, "audit": 4}
    assert [record.value for record in log.read(2)] == [b"c", b"d"]
    with pytest.raises(Promoted):
        fork.cursor("audit").commit(4)


def test_an_append_over_quota_waits_and_goes_on_when_the_quota_is_lifted(
    service: anabranch.Service,
) -> None:
    log = service.create("metered")
    log.set_quota(Quota(append_bytes_per_s=1))
    assert log.describe().quota == Quota(append_bytes_per_s=1)
    assert log.cfork("same").description.quota == Quota(append_bytes_per_s=1)
    assert log.cfork("other", quota=Quota(read_bytes_per_s=9)).description.quota == Quota(
        read_bytes_per_s=9
    )
    log.append(b"the broker learns of it")
    log.append(bytes(100_000))
    late = log.append_nowait(b"late", timeout=120)
    log.set_quota(Quota())
    assert late.result().position == 2
    assert log.describe().quota is None


def test_bad_records_are_refused_here_with_nothing_appended(service: anabranch.Service) -> None:
    log = service.create("bad")
    with pytest.raises(RecordTooLarge):
        log.append(b"x" * (1 << 20) + b"y")
    with pytest.raises(BadRequest):
        log.append("text")  # type: ignore[arg-type]
    with pytest.raises(BadRequest):
        log.append(b"x", headers={"a": 1})  # type: ignore[dict-item]
    with pytest.raises(BadRequest):
        log.append(b"x", timestamp=datetime(2024, 1, 1))  # noqa: DTZ001
    assert log.tail() == 0


MEANINGLESS: dict[str, Callable[[Any], object]] = {
    "read text": lambda log: list(log.read("5")),
    "read nan": lambda log: list(log.read(math.nan)),
    "read 2^64": lambda log: list(log.read(1 << 64)),
    "read none": lambda log: list(log.read(0, count=0)),
    "wait text": lambda log: list(log.read(0, wait="5")),
    "wait nan": lambda log: list(log.read(0, wait=math.nan)),
    "wait -1": lambda log: list(log.read(0, wait=-1)),
    "trim text": lambda log: log.trim("5"),
    "trim -1": lambda log: log.trim(-1),
    "ttl nan": lambda log: log.cfork("f", ttl=math.nan),
    "ttl text": lambda log: log.cfork("f", ttl="5"),
    "many of text": lambda log: log.append_many("abc"),
    "once of text": lambda log: log.append_many("abc", request_id="one"),
    "subscribe text": lambda log: log.subscribe("5"),
    "cursor -1": lambda log: log.cursor("c").commit(-1),
}


@pytest.mark.parametrize("asked", list(MEANINGLESS))
def test_what_cant_be_meant_is_refused_at_once(service: anabranch.Service, asked: str) -> None:
    log = service.create(f"meant-{uuid4().hex[:12]}")
    with pytest.raises(BadRequest):
        MEANINGLESS[asked](log)


def test_what_is_no_receipt_is_refused_at_once(service: anabranch.Service) -> None:
    for text in (5, None, "", "1.2"):
        with pytest.raises(BadRequest):
            service.receipt(text)  # type: ignore[arg-type]


def test_what_a_list_of_appends_has_raised_isnt_raised_again(server: Server) -> None:
    service = anabranch.connect(server.url)
    fork = service.create("many").cfork("f")
    fork.squash()
    # Several batches: a value that fills one, and the next.
    with pytest.raises(Squashed):
        fork.append_many([b"x" * 900_000] * 6)
    service.flush()
    service.close()


def test_an_error_that_nobody_awaits_is_raised_at_the_end(server: Server) -> None:
    service = anabranch.connect(server.url)
    fork = service.create("silent").cfork("f")
    fork.squash()
    fork.append_nowait(b"lost")
    with pytest.raises(Squashed):
        service.close()
    service.close()
    with pytest.raises(Unavailable, match="it was closed"):
        service.survey()


def test_nobody_listening_is_said_soon() -> None:
    with pytest.raises(Unavailable, match="can't be reached"):
        anabranch.connect("127.0.0.1:1", timeout=0.2)


def test_any_number_of_threads(service: anabranch.Service) -> None:
    log = service.create("threads")

    def work(name: int) -> None:
        for number in range(50):
            log.append(b"%d %d" % (name, number))

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = values(log)
    for name in range(8):
        mine = [value for value in found if value and value.startswith(b"%d " % name)]
        assert mine == [b"%d %d" % (name, number) for number in range(50)]


def test_the_asyncio_client_the_same(server: Server) -> None:
    async def run() -> None:
        async with aio.connect(server.url) as service:
            log = await service.create("async")
            await asyncio.gather(*[log.append(b"%d" % number) for number in range(100)])
            assert await log.append_nowait(b"last") == (100, None)
            found = [record.position async for record in log.read(0, count=5)]
            assert found == [0, 1, 2, 3, 4]
            fork = await log.cfork("f", promotable=True)
            await fork.append(b"fork")
            await fork.promote()
            assert await log.tail() == 102
            async with log.subscribe(100) as events:
                first = await anext(events)
                assert isinstance(first, Deliver)
                assert first.record.value == b"last"
            names = [each.name async for each in service.logs("async")]
            assert names == ["async"]
            reading = asyncio.ensure_future(anext(log.read(102, wait=60)))
            await asyncio.sleep(0)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading

    asyncio.run(run())


def test_a_killed_server_loses_and_repeats_nothing(tmp_path: Path) -> None:
    """Appends and a subscription go on over kill -9, in order, each record once."""
    with Server.started(tmp_path) as first:
        port = first.url.rpartition(":")[2]
        service = anabranch.connect(first.url)
        log = service.create("killed")
        handles = [log.append_nowait(b"%d" % number, timeout=120) for number in range(2_000)]
        assert handles[0].result().position == 0
        events = log.subscribe(0)
        seen = events.take()
        first.process.kill()
        first.process.wait()
        (first.data / "endpoint").unlink(missing_ok=True)
    with Server.started(tmp_path, "--port", port):
        handles += [
            log.append_nowait(b"%d" % number, timeout=120) for number in range(2_000, 2_100)
        ]
        assert [handle.result().position for handle in handles] == list(range(2_100))
        assert values(log) == [b"%d" % number for number in range(2_100)]
        while len(seen) < 2_100:
            seen += events.take()
        events.close()
        told = [event.record.position for event in seen if isinstance(event, Deliver)]
        assert told == list(range(2_100))
        service.close()


def test_the_howto_is_a_program_that_runs(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (root / "docs" / "howto" / "python-client.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 10
    with Server.started(tmp_path) as own:
        names: dict[str, object] = {}
        for block in blocks:
            exec(block.replace("anabranch://127.0.0.1:7420", own.url), names)
    told = capsys.readouterr().out.splitlines()
    assert told[:2] == ["0", "0 b'first' b'customer-1' 1-0"]
    assert "orders" in told
    for shown in (r"bolt \d+ \[b'first', b'second'\]", r"belfast \d+ \[b'101.5', b'101.7'\]"):
        assert any(re.fullmatch(shown, each) for each in told), shown
    assert "6" in told
