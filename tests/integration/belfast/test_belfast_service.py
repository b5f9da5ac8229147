"""A Belfast log through the one client: created, found, appended to, read, and refused what it
lacks.
"""

import asyncio
from collections.abc import Iterator

import pytest
from examples.belfast.__main__ import main as examples
from tests.integration.belfast.deployment import PATIENCE_S, LocalLog
from tests.integration.server_process import running

import anabranch
from anabranch.client.session.endpoint import belfast_endpoint
from anabranch.core.errors import BadRequest, NotOffered, UnknownLog, WrongEngine


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of one process that serves logs of both engines."""
    with running(tmp_path_factory.mktemp("data")) as process:
        yield f"anabranch://127.0.0.1:{process.port}"


@pytest.fixture(scope="module")
def service(url: str) -> Iterator[anabranch.Service]:
    with anabranch.connect(url) as service:
        yield service


@pytest.fixture(scope="module")
def ticks(service: anabranch.Service) -> anabranch.SpeculativeLog:
    return service.create("ticks", engine="belfast", shards=2)


def test_the_examples_run_on_a_log_of_a_service(url: str, ticks: anabranch.SpeculativeLog) -> None:
    asked = ["fraud", "--url", url, "--log", "ticks", "--records", "60", "--readers", "1"]
    assert asyncio.run(examples(asked)) == 0


def test_the_examples_make_a_log_of_their_own_in_a_service(
    url: str, service: anabranch.Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANABRANCH_URL", url)
    asked = ["fraud", "--records", "60", "--readers", "1"]
    assert asyncio.run(examples(asked)) == 0
    made = service.log("fraud", engine="belfast")
    end = made.tail()
    assert end >= 60
    assert asyncio.run(examples(asked)) == 0, "it is used again, from its tail on"
    assert made.tail() > end


def test_a_log_is_found_as_its_engine_s_own_type(
    service: anabranch.Service, ticks: anabranch.SpeculativeLog
) -> None:
    service.create("orders")
    for name, kind, engine in (
        ("ticks", anabranch.SpeculativeLog, "belfast"),
        ("orders", anabranch.Log, "bolt"),
    ):
        log = service.log(name)
        assert isinstance(log, kind)
        assert (log.name, log.engine, log.describe().engine) == (name, engine, engine)
    with pytest.raises(UnknownLog):
        service.log("nothing")


@pytest.mark.parametrize("name", ["ticks", "lines"])
def test_any_log_is_appended_to_read_followed_and_trimmed_alike(
    service: anabranch.Service, ticks: anabranch.SpeculativeLog, name: str
) -> None:
    log: anabranch.AnyLog = ticks if name == "ticks" else service.create(name)
    start = log.tail()
    first = log.append(b"0", key=b"k").position
    soon = [log.append_nowait(b"%d" % number) for number in (1, 2)]
    positions = [each.result().position for each in soon]
    positions += [each.position for each in log.append_many([b"3", b"4"])]
    assert first is not None
    assert first >= start
    assert log.tail() > first
    found = list(log.read(start))
    assert sorted(each.value or b"" for each in found) == [b"0", b"1", b"2", b"3", b"4"]
    assert {each.position for each in found} == {first, *positions}
    assert [each.position for each in found] == sorted(each.position for each in found)
    assert [each.key for each in found if each.value == b"0"] == [b"k"]
    assert [each.position for each in log.read(start, 2)] == [each.position for each in found[:2]]
    assert list(log.read(log.tail())) == []
    with log.subscribe(start, speculative=False) as events:
        taken: list[bytes | None] = []
        while len(taken) < 5:
            came = events.take(timeout=PATIENCE_S)
            taken += [each.record.value for each in came if isinstance(each, anabranch.Deliver)]
    assert taken == [each.value for each in found]
    log.trim(found[1].position)
    assert next(iter(log.read(found[1].position))).position == found[1].position
    service.flush()


def test_a_read_at_the_end_waits_for_what_comes(ticks: anabranch.SpeculativeLog) -> None:
    end = ticks.tail()
    assert list(ticks.read(end, wait=0.01)) == []
    coming = ticks.append_nowait(b"late")
    assert [each.value for each in ticks.read(end, wait=PATIENCE_S)] == [b"late"]
    assert coming.result().position is not None


def test_request_ids_go_with_a_shard(ticks: anabranch.SpeculativeLog) -> None:
    start = ticks.tail()
    shard = ticks.directory().shards[0].name
    once = ticks.append_many([b"a", b"b"], shard=shard, request_id="once")
    assert ticks.append_many([b"a", b"b"], shard=shard, request_id="once") == once
    assert [each.position for each in ticks.read(start)] == [each.position for each in once]
    with pytest.raises(BadRequest, match="shard"):
        ticks.append(b"c", request_id="again")


def test_what_a_log_lacks_is_refused_by_name(
    service: anabranch.Service, ticks: anabranch.SpeculativeLog
) -> None:
    plain = service.ensure("plain")
    with pytest.raises(
        NotOffered, match=r"ticks is a log of the belfast engine.* have no cfork.*append"
    ):
        ticks.cfork("what-if")  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(NotOffered, match="plain is a log of the bolt engine"):
        plain.status()  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(NotOffered, match="verbs of the bolt engine"):
        service.log("ticks", engine="bolt")
    with pytest.raises(BadRequest, match="there are bolt, belfast and erwin"):
        service.log("ticks", engine="other")  # pyright: ignore[reportCallIssue, reportArgumentType]
    assert service.ensure("ticks", engine="belfast").id == ticks.id
    with pytest.raises(NotOffered, match="ticks is a log of the belfast engine"):
        service.ensure("ticks")
    with pytest.raises(WrongEngine):
        service.append("ticks", [b"x"], request_id="r")
    with pytest.raises(BadRequest, match="shards"):
        service.create("odd", shards=2)  # pyright: ignore[reportCallIssue]
    with pytest.raises(AttributeError):
        plain.nonsense()  # pyright: ignore[reportAttributeAccessIssue]


def test_with_an_event_loop_it_is_the_same(url: str, ticks: anabranch.SpeculativeLog) -> None:
    async def scene() -> None:
        async with anabranch.aio.connect(url) as service:
            log = await service.log("ticks", engine="belfast")
            start = await log.tail()
            pending = [log.append_nowait(b"%d" % number, shard="shard-0") for number in range(3)]
            placed = [(await each).position for each in pending]
            assert [each.position async for each in log.read(start)] == placed
            with pytest.raises(NotOffered):
                await log.promote()  # pyright: ignore[reportAttributeAccessIssue]

    asyncio.run(scene())


def test_a_deployment_that_runs_already_is_a_log_of_the_service(
    service: anabranch.Service, shared: LocalLog
) -> None:
    where = belfast_endpoint(shared.layout.url)
    addresses = [str(each) for each in where.addresses]
    made = service.create("far", engine="belfast", addresses=addresses, cluster=where.cluster)
    with anabranch.belfast.connect(shared.layout.url) as direct:
        position = direct.append(b"directly")
        found = service.log("far", engine="belfast")
        assert found.id == made.id
        assert [each.value for each in found.read(position, 1)] == [b"directly"]
        placed = found.append(b"through the service").position
        assert placed is not None
        assert [each.value for each in direct.read(placed, 1)] == [b"through the service"]
        with pytest.raises(NotOffered, match="no cfork"):
            direct.cfork()  # pyright: ignore[reportAttributeAccessIssue]


def test_a_description_says_where_a_log_begins_and_ends(
    service: anabranch.Service, ticks: anabranch.SpeculativeLog
) -> None:
    before = ticks.describe()
    placed = ticks.append(b"described").position
    assert placed is not None
    found = ticks.describe()
    assert found.start == before.start
    assert found.settled == found.tail > placed
    assert found.own_records > before.own_records
    ticks.trim(placed)
    assert ticks.describe().start == placed
    made = service.ensure("ensured", engine="belfast", shards=2)
    assert service.ensure("ensured", engine="belfast").id == made.id
