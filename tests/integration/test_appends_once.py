"""Appends that are repeated, by programs that know nothing of the tries before (decision 38).

A server that is stopped takes what it is sent, and answers it once it goes on: after the deadline.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.integration.cli_server import Server

import anabranch
from anabranch.core.errors import (
    AnabranchError,
    AppendBlocked,
    BadRequest,
    DeadlineExceeded,
    OutcomeUnknown,
    Promoted,
    Retry,
    Squashed,
)

TIMEOUT_S = 0.3
"""Nothing is answered within it, for the server is stopped."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server.started(tmp_path_factory.mktemp("once")) as server:
        yield server


@pytest.fixture
def service(server: Server) -> Iterator[anabranch.Service]:
    with anabranch.connect(server.url) as service:
        yield service


@contextmanager
def stopped(server: Server) -> Iterator[None]:
    server.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        server.process.send_signal(signal.SIGCONT)


def values(log: anabranch.Log) -> list[bytes]:
    return [record.value or b"" for record in log.read()]


def test_an_append_that_nobody_answered_is_repeated_by_another_client_under_its_id(
    server: Server, service: anabranch.Service
) -> None:
    log = service.create("answered-late")
    with stopped(server):
        with pytest.raises(DeadlineExceeded) as late:
            service.append(log.name, [b"looked up in vain"], request_id="k0", timeout=TIMEOUT_S)
        assert late.value.request_id is None, "nothing was sent yet, and nothing can double"
        with pytest.raises(DeadlineExceeded) as late:
            log.append(b"a", request_id="k", timeout=TIMEOUT_S)
        assert late.value.request_id == "k"
        assert "request id k" in late.value.message
    first = log.append(b"b")
    with anabranch.connect(server.url) as other:
        again = other.log(log.name).append(b"a", request_id="k")
        assert other.append(log.name, [b"a"], request_id="k") == [again]
    assert {first.position, again.position} == {0, 1}
    assert sorted(values(log)) == [b"a", b"b"]


def test_an_append_without_an_id_is_no_retry_while_it_may_be_in_the_log(
    server: Server, service: anabranch.Service
) -> None:
    """So a loop that repeats whatever says so never doubles a record."""
    log = service.create("without-an-id")

    def stubborn() -> None:
        while True:
            try:
                log.append(b"a", timeout=TIMEOUT_S)
            except Retry:
                continue
            else:
                return

    with stopped(server), pytest.raises(OutcomeUnknown):
        stubborn()
    log.append(b"b")
    assert values(log).count(b"a") <= 1


def test_a_blocked_append_says_so_and_a_loop_appends_it_once_after_the_promotion(
    service: anabranch.Service,
) -> None:
    root = service.create("blocked")
    view = root.cfork("view")
    winner = root.cfork("try", promotable=True)
    with pytest.raises(AppendBlocked, match="nothing was appended") as blocked:
        view.append(b"x", timeout=0.5)
    assert blocked.value.facts["fork"] == winner.name
    told = threading.Event()

    def stubborn(value: bytes, request_id: str | None) -> None:
        while True:
            try:
                view.append(value, request_id=request_id, timeout=0.5)
            except AppendBlocked:
                told.set()
            else:
                return

    loops = [
        threading.Thread(target=stubborn, args=(b"x", None)),
        threading.Thread(target=stubborn, args=(b"y", "k")),
    ]
    for each in loops:
        each.start()
    assert told.wait(30)
    winner.append(b"won")
    winner.promote()
    for each in loops:
        each.join()
    view.append(b"y", request_id="k")
    assert sorted(values(view)) == [b"won", b"x", b"y"]


def test_a_request_gives_its_first_result_whatever_became_of_the_log(
    service: anabranch.Service,
) -> None:
    root = service.create("whatever")
    squashed, promoted = root.cfork("squashed"), root.cfork("promoted", promotable=True)
    name = promoted.name
    first = promoted.append_many([b"a", b"b"], request_id="k")
    assert [each.position for each in first] == [0, 1]
    promoted.promote()
    assert service.append(name, [b"a", b"b"], request_id="k") == first
    assert promoted.append_many([b"a", b"b"], request_id="k") == first
    with pytest.raises(Promoted):
        service.append(name, [b"a"], request_id="never used")
    done = squashed.append(b"c", request_id="k")
    squashed.squash()
    with pytest.raises(Squashed):
        squashed.append(b"c", request_id="never used")
    anew = root.cfork("squashed")
    assert anew.append(b"c", request_id="k") == done
    assert values(anew) == values(root) == [b"a", b"b"]


def test_a_batch_of_others_is_a_request_as_well(service: anabranch.Service) -> None:
    log = service.create("batches")
    log.append_many([b"a", b"b"])
    batch = bytes(next(log.read_batches()).raw)
    assert {log.append_batch(batch, request_id="k").position for _ in range(3)} == {2}
    assert values(log) == [b"a", b"b", b"a"]


@pytest.mark.parametrize("request_id", ["", "x" * 201])
def test_an_id_of_no_use_is_refused_at_once(service: anabranch.Service, request_id: str) -> None:
    log = service.ensure("ids")
    with pytest.raises(BadRequest, match="request_id"):
        log.append(b"a", request_id=request_id)
    with pytest.raises(AnabranchError, match="no record"):
        log.append_many([], request_id="k")
