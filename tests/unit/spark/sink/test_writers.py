"""Spark's writers, pickled from the driver to tasks and to its commits (no session, no Java)."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

import anabranch
from anabranch import testing
from anabranch.core.limits import Limits
from anabranch.errors import BadRequest, WriterConflict

pytest.importorskip("pyspark", reason="the extra `spark` isn't installed")

from pyspark import TaskContext, cloudpickle
from pyspark.sql.types import StructType

from anabranch_spark.sink.batch_writer import batch_writer
from anabranch_spark.sink.identity import BATCH_ID, QUERY_ID
from anabranch_spark.sink.stream_writer import stream_writer
from anabranch_spark.sink.unnamed import KEPT_MAX

pa: Any = pytest.importorskip("pyarrow", reason="the extra `spark` isn't installed")

BOTH = pytest.mark.parametrize("mode", ["direct", "fork"])
VALUE = StructType().add("value", "binary")
QUERY = "6d7b1e42-a599-4978-8d5e-2242879ebe89"


@pytest.fixture(scope="module")
def server() -> Iterator[testing.Server]:
    with testing.server() as server:
        yield server


@pytest.fixture
def service(server: testing.Server) -> Iterator[anabranch.Service]:
    with anabranch.connect(server.url) as service:
        yield service


@pytest.fixture
def log(service: anabranch.Service, request: pytest.FixtureRequest) -> anabranch.Log:
    name = "".join(each if each.isalnum() else "-" for each in request.node.name)
    return service.create(name.strip("-")[-100:].replace("--", "-"))


def sent(thing: Any) -> Any:
    """As it arrives in another process."""
    return cloudpickle.loads(cloudpickle.dumps(thing))


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run what a task runs, with a partition and local properties."""

    def run(writer: Any, values: list[bytes], part: int = 0, **properties: str) -> Any:
        context: Any = TaskContext()
        context._partitionId, context._localProperties = part, properties
        monkeypatch.setattr(TaskContext, "_taskContext", context)
        batch = pa.record_batch([pa.array(values, pa.binary())], names=["value"])
        return sent(sent(writer).write(iter([batch])))

    return run


def values(log: anabranch.Log) -> list[bytes]:
    return [record.value or b"" for record in log.read()]


@BOTH
def test_a_micro_batch_goes_from_tasks_to_commit(
    server: testing.Server, log: anabranch.Log, task: Any, mode: str
) -> None:
    options = {"service": server.url, "log": log.name, "mode": mode, "checkpointlocation": "x"}
    for batch, parts in enumerate([[[b"a"], [b"b", b"c"]], [[], [b"d"]], [[], []]]):
        properties = {QUERY_ID: QUERY, BATCH_ID: str(batch)}
        for _ in range(2):
            writer = stream_writer(options, VALUE, overwrite=False)
            messages = [
                task(writer, part, number, **properties) for number, part in enumerate(parts)
            ]
            committer = stream_writer(options, VALUE, overwrite=False)
            committer.commit(messages, batch)
            committer.commit(messages, batch)
            committer.abort([*messages, None], batch)
    assert values(log) == [b"a", b"b", b"c", b"d"]
    (state,) = log.writers()
    assert (state.writer, state.complete) == (f"spark-{QUERY}", 2)
    with pytest.raises(WriterConflict, match="version 2 is complete already"):
        task(
            stream_writer(options, VALUE, overwrite=False),
            [b"e"],
            **{QUERY_ID: QUERY, BATCH_ID: "1"},
        )


@BOTH
def test_a_batch_write_goes_from_tasks_to_commit(
    server: testing.Server, log: anabranch.Log, task: Any, mode: str
) -> None:
    options = {"service": server.url, "log": log.name, "mode": mode, "runid": "tuesday"}
    for _ in range(2):
        writer = batch_writer(options, VALUE, overwrite=False)
        messages = [task(writer, [b"a"], 0), task(writer, [b"b"], 1)]
        sent(writer).commit(messages)
        sent(writer).abort(messages)
    assert values(log) == [b"a", b"b"]
    assert [each.writer for each in log.writers()] == ["run-tuesday"]


@BOTH
def test_without_a_run_a_batch_write_warns_and_is_appended_again(
    server: testing.Server,
    log: anabranch.Log,
    task: Any,
    mode: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    options = {"service": server.url, "log": log.name, "mode": mode}
    for _ in range(2):
        with caplog.at_level(logging.WARNING):
            writer = batch_writer(options, VALUE, overwrite=False)
        writer.commit([task(writer, [b"a"])])
    assert values(log) == [b"a", b"a"]
    assert len(caplog.messages) == len(set(caplog.messages)) == 2
    assert "no option 'runId'" in caplog.text
    assert all(each.writer in caplog.text for each in log.writers())


@BOTH
def test_writes_without_a_run_never_use_up_the_writers_of_a_log(task: Any, mode: str) -> None:
    with (
        testing.server(limits=Limits(writers_per_log_max=KEPT_MAX + 5)) as server,
        anabranch.connect(server.url) as service,
    ):
        log = service.create("many")
        options = {"service": server.url, "log": log.name, "mode": mode}
        for _ in range(KEPT_MAX + 10):
            writer = batch_writer(options, VALUE, overwrite=False)
            writer.commit([task(writer, [b"a"])])
        assert len(values(log)) == KEPT_MAX + 10
        assert len(log.writers()) == KEPT_MAX + 1


@pytest.mark.parametrize("reports", [True, False])
def test_a_write_without_a_run_that_failed_is_forgotten_and_one_that_is_done_is_not(
    server: testing.Server, log: anabranch.Log, task: Any, reports: bool
) -> None:
    options = {"service": server.url, "log": log.name}
    writer = batch_writer(options, VALUE, overwrite=False)
    message = task(writer, [b"a"])
    assert len(log.writers()) == 1
    sent(writer).abort([message if reports else None, None])
    assert log.writers() == []
    done = batch_writer(options, VALUE, overwrite=False)
    messages = [task(done, [b"b"])]
    done.commit(messages)
    sent(done).abort(messages)
    task(done, [b"b"])
    assert values(log) == [b"a", b"b"], "a task that comes late appends nothing"


def test_under_foreach_batch_a_write_without_identity_is_refused(
    server: testing.Server, log: anabranch.Log, task: Any
) -> None:
    options = {"service": server.url, "log": log.name}
    with pytest.raises(BadRequest, match=r"foreachBatch.*'writer' and 'version'"):
        task(batch_writer(options, VALUE, overwrite=False), [b"a"], **{BATCH_ID: "0"})
    for more in ({"runId": "a"}, {"writer": "q", "version": "0"}):
        writer = batch_writer({**options, **more}, VALUE, overwrite=False)
        writer.commit([task(writer, [b"a"], **{BATCH_ID: "0"})])
    assert values(log) == [b"a", b"a"]


@pytest.mark.parametrize("factory", [stream_writer, batch_writer])
def test_what_a_log_can_not_do_is_refused_before_a_task_starts(factory: Any) -> None:
    options = {"service": "anabranch://nowhere", "log": "orders"}
    assert factory(options, VALUE, overwrite=False)
    with pytest.raises(BadRequest, match="overwrite a log"):
        factory(options, VALUE, overwrite=True)
    with pytest.raises(BadRequest, match="column 'price'"):
        factory(options, StructType().add("price", "double"), overwrite=False)
    with pytest.raises(BadRequest, match="option lag: there is none"):
        factory({**options, "lag": "1"}, VALUE, overwrite=False)


def test_a_services_address_comes_from_the_drivers_environment(
    server: testing.Server, log: anabranch.Log, task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANABRANCH_URL", server.url)
    writer = batch_writer({"log": log.name, "runId": "a"}, VALUE, overwrite=False)
    monkeypatch.delenv("ANABRANCH_URL")
    writer.commit([task(writer, [b"a"])])
    assert values(log) == [b"a"]
