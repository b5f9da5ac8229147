"""Lazy fronts that `anabranch up` runs: appended to, forked before, killed, refused, deleted."""

import signal
from pathlib import Path
from typing import Literal

import pytest
from tests.integration.server_process import Process, batch, running

import anabranch
from anabranch.client.sync_lazy_log import LazyLog
from anabranch.core.bolt.protocol.messages import Append
from anabranch.core.errors import (
    BadRequest,
    LazyAppendsOnly,
    OutcomeUnknown,
    ReceiptPending,
    Squashed,
)
from anabranch.core.errors.refused import Refused

SETTINGS = anabranch.Settings(timeout_ms=30_000)


def connected(process: Process) -> anabranch.Service:
    return anabranch.connect(f"anabranch://127.0.0.1:{process.port}", settings=SETTINGS)


def opened(service: anabranch.Service, name: str) -> LazyLog:
    log = service.log(name, engine="bolt")
    assert isinstance(log, LazyLog)
    return log


def receipts(log: anabranch.Log, *values: bytes) -> list[anabranch.Receipt]:
    return [each.receipt for each in log.append_many(values) if each.receipt is not None]


def appended_at_last(log: LazyLog, value: bytes) -> anabranch.Receipt:
    """An append that is sent in the view that ended with its members may be called unknown."""
    while True:
        try:
            (receipt,) = receipts(log, value)
        except OutcomeUnknown:
            continue
        return receipt


@pytest.mark.parametrize("durability", ["fsync", "memory"])
def test_an_append_has_a_receipt_and_then_its_position(
    tmp_path: Path, durability: Literal["fsync", "memory"]
) -> None:
    with running(tmp_path) as process, connected(process) as service:
        log = service.create("orders", append="lazy", durability=durability, sequencers=2)
        assert log.description.front is not None
        assert log.description.front.durability == durability
        first = log.append(b"0")
        assert first.position is None
        assert first.receipt is not None
        later = receipts(log, *(b"%d" % n for n in range(1, 500)))
        assert first.receipt.position() == 0
        assert later[-1].position() == 499
        assert str(later[-1]) == f"{log.id}.0.499"
        assert service.receipt(str(later[-1])).position() == 499
        assert [record.value for record in log.read(0, 500)] == [b"%d" % n for n in range(500)]
        status = opened(service, "orders").status()
        assert (status.tail, status.durability, len(status.members)) == (500, durability, 2)


def test_positions_are_withheld_while_a_fork_is_undecided_and_appends_go_on(tmp_path: Path) -> None:
    with running(tmp_path) as process, connected(process) as service:
        log = service.create("orders", append="lazy")
        assert receipts(log, b"a", b"b")[-1].position() == 1
        fork = log.cfork("what-if", promotable=True)
        assert fork.append(b"c").position == 2
        (late,) = receipts(log, b"d")
        with pytest.raises(ReceiptPending):
            late.position(timeout=0.2)
        fork.promote()
        assert late.position() == 3
        assert [record.value for record in log.read(0, 4)] == [b"a", b"b", b"c", b"d"]
        (after,) = receipts(log, b"e")
        assert after.position() == 4


def test_what_was_acknowledged_on_disk_survives_a_kill(tmp_path: Path) -> None:
    with running(tmp_path) as process, connected(process) as service:
        log = service.create("orders", append="lazy", sequencers=2)
        log.append_many([b"%d" % n for n in range(300)])
        process.end(signal.SIGKILL)
    with running(tmp_path) as process, connected(process) as service:
        log = opened(service, "orders")
        (last,) = receipts(log, b"300")
        assert last.position() == 300
        assert [record.value for record in log.read(0, 301)] == [b"%d" % n for n in range(301)]


def test_a_front_in_memory_goes_on_after_a_kill_and_says_what_it_lost(tmp_path: Path) -> None:
    with running(tmp_path) as process, connected(process) as service:
        log = service.create("orders", append="lazy", durability="memory")
        assert receipts(log, b"kept")[0].position() == 0
        process.end(signal.SIGKILL)
    with running(tmp_path) as process, connected(process) as service:
        log = opened(service, "orders")
        assert appended_at_last(log, b"later").position() == 1
        ((view, _),) = log.status().lost_views
        process.end(signal.SIGKILL)
    assert process.said.count(f"view={view}") == process.said.count("a view was lost") == 1


def test_a_direct_append_is_refused(tmp_path: Path) -> None:
    with running(tmp_path) as process, connected(process) as service:
        log = service.create("orders", append="lazy")
        answer = process.line().call(Append(log.id, batch(0, 9)))
        assert isinstance(answer, Refused)
        assert answer.code == LazyAppendsOnly.code
        fork = log.cfork("direct")
        assert fork.append(b"x").position == 0


def test_a_deleted_log_ends_its_front(tmp_path: Path) -> None:
    with running(tmp_path) as process, connected(process) as service:
        log = service.create("orders", append="lazy")
        assert receipts(log, b"a")[0].position() == 0
        service.delete(log)
        with pytest.raises(Squashed):
            service.log("orders")
        assert service.create("orders", append="lazy").append(b"b").receipt is not None
        assert process.end(signal.SIGTERM) == 0
    assert len(list((tmp_path / "lazy").iterdir())) == 1


def test_what_a_front_cannot_be_is_refused(tmp_path: Path) -> None:
    with running(tmp_path) as process, connected(process) as service:
        with pytest.raises(BadRequest, match="sequencers"):
            service.create("orders", append="lazy", sequencers=10)
        with pytest.raises(BadRequest):
            service.create("orders", engine="erwin", append="lazy")  # type: ignore[call-overload]


def test_a_log_that_is_there_is_made_lazy_only_if_that_is_asked_for(tmp_path: Path) -> None:
    with running(tmp_path) as process, connected(process) as service:
        direct = service.create("orders")
        direct.append(b"0")
        fork = direct.cfork("what-if")
        with pytest.raises(BadRequest, match="set_appends"):
            service.ensure("orders", append="lazy")
        log = service.set_appends("orders", "lazy", sequencers=2)
        assert isinstance(log, LazyLog)
        with pytest.raises(LazyAppendsOnly):
            direct.append(b"refused")
        assert log.append(b"1").receipt is not None
        assert appended_at_last(log, b"2").position() == 2
        assert isinstance(service.ensure("orders", append="lazy"), LazyLog)
        with pytest.raises(BadRequest, match="keeps them"):
            service.set_appends("orders", "lazy", sequencers=1)
        of_its_own = service.set_appends(fork, "lazy")
        assert isinstance(of_its_own, LazyLog)
        assert appended_at_last(of_its_own, b"3").position() == 3
        assert [each.value for each in log.read(0)] == [b"0", b"1", b"2"]
        assert [each.value for each in of_its_own.read(0)] == [b"0", b"1", b"2", b"3"]


def test_a_front_that_ends_leaves_all_that_it_acknowledged_to_the_log(tmp_path: Path) -> None:
    with running(tmp_path) as process, connected(process) as service:
        lazy = service.create("orders", append="lazy", sequencers=2)
        early = receipts(lazy, *(b"%d" % n for n in range(500)))
        direct = service.set_appends("orders", "direct")
        assert not isinstance(direct, LazyLog)
        assert direct.append(b"500").position == 500
        assert [each.value for each in direct.read(0)] == [b"%d" % n for n in range(501)]
        with pytest.raises(BadRequest, match="fork"):
            service.set_appends("orders", "lazy")
        assert early
        assert not list((tmp_path / "lazy").iterdir()), "its journals are gone"
    with running(tmp_path) as process, connected(process) as service:
        assert service.log("orders", engine="bolt").append(b"501").position == 501
