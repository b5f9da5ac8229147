"""A service without an event loop, and its logs, forks and cursors, against plain lists."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random

import pytest
from tests.unit.client.lossy import Fate, Network

import anabranch
from anabranch import testing
from anabranch.client import sync
from anabranch.client.driver.loop import LoopThread
from anabranch.core.errors import (
    AppendBlocked,
    BadRequest,
    DeadlineExceeded,
    Deposed,
    LogExists,
    LogHasForks,
    NotOffered,
    OutOfRange,
    OwnedByAnother,
    Promoted,
    ReadBlocked,
    ReceiptPending,
    Squashed,
    Unavailable,
    UnknownBroker,
    UnknownLog,
)

PATIENCE_S = 20


@dataclass
class Naive:
    """A log as a list. A fork that continues gets its parent's records as they come."""

    log: anabranch.Log
    values: list[bytes] = field(default_factory=list[bytes])
    start: int = 0
    heirs: "list[Naive]" = field(default_factory=list["Naive"])
    parent: "Naive | None" = None

    def append(self, values: list[bytes]) -> None:
        self.values += values
        for heir in self.heirs:
            heir.append(values)

    def family(self) -> "list[Naive]":
        return [self, *(each for heir in self.heirs for each in heir.family())]


class Walk:
    """Draws calls and makes them, of the real client and of the lists."""

    def __init__(self, service: anabranch.Service, name: str, seed: int) -> None:
        self.service, self.name = service, name
        self.chance = Random(seed)
        self.logs = [Naive(service.create(name))]
        self.count = 0

    def step(self) -> None:
        calls = (self.append, self.append, self.append, self.fork, self.decide, self.drop)
        self.chance.choice((*calls, self.trim, self.cursor, self.look))()

    def fresh(self, most: int = 5) -> list[bytes]:
        made = [b"%d" % (self.count + n) for n in range(self.chance.randint(1, most))]
        self.count += len(made)
        return made

    def append(self) -> None:
        naive, values = self.chance.choice(self.logs), self.fresh()
        positions = [each.position for each in naive.log.append_many(values)]
        assert positions == list(range(len(naive.values), len(naive.values) + len(values)))
        naive.append(values)

    def fork(self) -> None:
        parent = self.chance.choice(self.logs)
        if len(self.logs) > 8:
            return
        if self.chance.random() < 0.5:
            made = Naive(parent.log.cfork(), list(parent.values), parent.start, parent=parent)
            parent.heirs.append(made)
        elif len(parent.values) > parent.start:
            past = self.chance.randrange(parent.start, len(parent.values))
            made = Naive(parent.log.sfork(past=past), parent.values[: past + 1], parent.start)
        else:
            return
        self.logs.append(made)

    def decide(self) -> None:
        """A promotable fork, appends to it and to its parent, and the end of it."""
        parent = self.chance.choice(self.logs)
        if parent.parent is not None:
            return
        fork = parent.log.cfork(promotable=True)
        point, known = len(parent.values), [(each, len(each.values)) for each in parent.family()]
        both, receipts = list[bytes](), list[tuple[anabranch.Receipt, bytes]]()
        for _ in range(self.chance.randint(1, 4)):
            values = self.fresh(3)
            both += values
            if self.chance.random() < 0.5:
                assert all(each.position is not None for each in fork.append_many(values))
            else:
                done = parent.log.append_many(values)
                receipts += [
                    (each.receipt, v) for each, v in zip(done, values, strict=True) if each.receipt
                ]
                assert len(receipts) >= len(values), "its positions may still move"
                parent.append(values)
        self.withheld(parent, fork, point, receipts)
        if self.chance.random() < 0.6:
            promotion = fork.promote()
            assert promotion.into == parent.log.name
            for naive, before in known:
                naive.values[before:] = both
            with pytest.raises(Promoted, match=parent.log.name):
                fork.append(b"")
        else:
            fork.squash()
            with pytest.raises(Squashed):
                fork.tail()
        for receipt, value in receipts:
            position = self.service.receipt(str(receipt)).position()
            assert parent.values[position] == value

    def withheld(
        self,
        parent: Naive,
        fork: anabranch.Log,
        point: int,
        receipts: list[tuple[anabranch.Receipt, bytes]],
    ) -> None:
        assert parent.log.tail() == point
        if parent.log.describe().tail > point:
            with pytest.raises(ReadBlocked, match=fork.name):
                list(parent.log.read(point))
        for receipt, _ in receipts[:1]:
            with pytest.raises(ReceiptPending):
                receipt.position(timeout=0)
        for heir in parent.heirs[:1]:
            with pytest.raises(AppendBlocked):
                heir.log.append(b"", timeout=0.05)

    def drop(self) -> None:
        naive = self.chance.choice(self.logs)
        if naive is self.logs[0] or self.chance.random() < 0.5:
            return
        naive.log.squash()
        gone = naive.family()
        self.logs = [each for each in self.logs if each not in gone]
        if naive.parent is not None:
            naive.parent.heirs.remove(naive)

    def trim(self) -> None:
        naive = self.chance.choice(self.logs)
        before = self.chance.randint(0, len(naive.values))
        naive.log.trim(before)
        naive.start = max(naive.start, before)
        if before < len(naive.values) and naive.start:
            with pytest.raises(OutOfRange):
                list(naive.log.read(naive.start - 1))

    def cursor(self) -> None:
        naive = self.chance.choice(self.logs)
        position = self.chance.randint(0, len(naive.values))
        here = naive.log.cursor("here")
        here.commit(position)
        assert here.get() == position
        if self.chance.random() < 0.5:
            here.delete()
            assert here.get() is None

    def look(self) -> None:
        for naive in self.logs:
            log, start = naive.log, naive.start
            assert log.tail() == len(naive.values)
            assert [each.value for each in log.read(start)] == naive.values[start:]
        naive = self.chance.choice(self.logs)
        if naive.start < len(naive.values):
            start = self.chance.randrange(naive.start, len(naive.values))
            count = self.chance.randint(1, 6)
            found = list(naive.log.read(start, count))
            assert [each.value for each in found] == naive.values[start : start + count]
            assert [each.position for each in found] == list(range(start, start + len(found)))
        names = {each.name for each in self.service.logs(tree=self.name)}
        assert {each.log.name for each in self.logs} <= names


@pytest.mark.parametrize("seed", range(4))
def test_logs_and_forks_are_lists_that_go_on(
    service: anabranch.Service, name: str, seed: int
) -> None:
    walk = Walk(service, name, seed)
    for _ in range(100):
        walk.step()
    walk.look()


def test_records_of_one_origin_have_one_id_wherever_they_are_read(
    service: anabranch.Service, name: str
) -> None:
    log = service.create(name)
    log.append_many([b"1", b"2"])
    fork = log.cfork("try", promotable=True)
    fork.append(b"own")
    ids = [each.id for each in fork.read()]
    assert [each.id for each in log.read()] == ids[:2]
    fork.promote()
    assert [each.id for each in log.read()] == ids
    assert log.diff(log.sfork()).shared == 3


def test_a_name_is_made_once_and_ensured_as_often_as_one_likes(
    service: anabranch.Service, name: str
) -> None:
    made = service.ensure(name, why="to see")
    with pytest.raises(LogExists):
        service.create(name)
    assert service.ensure(name).id == made.id == service.log(name).id == service.log(made.id).id
    with ThreadPoolExecutor(4) as pool:
        ids = set(pool.map(lambda _: service.ensure(f"{name}-2").id, range(8)))
    assert len(ids) == 1


def test_what_is_gone_says_so_and_its_name_is_free(service: anabranch.Service, name: str) -> None:
    log = service.create(name)
    fork = log.cfork("try")
    with pytest.raises(LogHasForks):
        service.delete(name)
    service.delete(log, force=True)
    for gone in (log, fork):
        with pytest.raises(Squashed):
            gone.append(b"1")
    with pytest.raises(UnknownLog):
        service.delete(f"{name}-never")
    assert service.create(name).id != log.id


def test_all_logs_are_listed_however_many_pages_that_takes(
    service: anabranch.Service, name: str
) -> None:
    names = [f"{name}-{number:04}" for number in range(30)]
    for each in names:
        service.create(each)
    assert [each.name for each in service.logs(f"{name}-")] == names
    assert [each.name for each in service.logs(f"{name}-002")] == names[20:30]
    assert list(service.logs(tree=f"{name}-never")) == []


def test_one_whose_turn_is_over_changes_nothing_more(
    server: testing.Server, service: anabranch.Service, name: str
) -> None:
    service.guard(f"scope of {name}", 1)
    service.create(name)
    with anabranch.connect(server.url) as later:
        later.guard(f"scope of {name}", 2)
        later.create(f"{name}-2")
    with pytest.raises(Deposed):
        service.create(f"{name}-3")
    service.log(name).append(b"appends are not guarded")


def test_an_owner_has_one_log_and_a_log_one_owner(service: anabranch.Service, name: str) -> None:
    owner = f"k8s/n/Log/{name}/1"
    made = service.create(name, owner=owner)
    assert service.create(f"{name}-2", owner=owner).id == made.id
    with pytest.raises(OwnedByAnother):
        service.adopt(name, f"{owner}2")
    service.release(name)
    assert service.adopt(name, f"{owner}2").owner == f"{owner}2"
    assert [each.name for each in service.logs(owner=owner)] == [name]


def test_what_nobody_has_is_refused_by_name(service: anabranch.Service, name: str) -> None:
    with pytest.raises(UnknownLog):
        service.log(name)
    with pytest.raises(UnknownBroker):
        service.drain_broker("broker-9")
    with pytest.raises(BadRequest, match="receipt"):
        service.receipt("1.0")
    with pytest.raises(BadRequest, match="only logs of other engines"):
        service.create(name, shards=2)  # pyright: ignore[reportCallIssue, reportArgumentType]
    with pytest.raises(BadRequest, match="there are bolt, belfast and erwin"):
        service.create(name, engine="other")  # pyright: ignore[reportCallIssue, reportArgumentType]
    service.create(name)
    with pytest.raises(NotOffered):
        service.log(name, engine="belfast")


@pytest.mark.parametrize("address", ["127.0.0.1:1", "localhost:1"])
def test_a_service_that_isnt_there_is_told_in_time_and_leaves_nothing_running(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    # Servers of other tests start clients' threads of their own, so this client's own is looked at.
    started: list[LoopThread] = []

    def start() -> LoopThread:
        started.append(LoopThread())
        return started[-1]

    monkeypatch.setattr(sync, "LoopThread", start)
    with pytest.raises(Unavailable, match="can't be reached"):
        anabranch.connect(address, timeout=0.2)
    assert [each.closed for each in started] == [True]


def test_a_service_that_is_hung_up_on_comes_back_by_itself(
    lossy: tuple[Network, LoopThread], name: str
) -> None:
    network, thread = lossy
    with anabranch.connect(network.url) as service:
        log = service.create(name)
        network.refusing = True
        thread.run(network.cut())
        pending = log.append_nowait(b"1")
        with pytest.raises((Unavailable, DeadlineExceeded)):
            service.survey(timeout=0.1)
        network.refusing = False
        assert pending.result().position == 0
        network.fate = lambda: Fate.LOSE_REQUEST
        with pytest.raises((Unavailable, DeadlineExceeded)):
            anabranch.connect(network.url, timeout=0.1)
