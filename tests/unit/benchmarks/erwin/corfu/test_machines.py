"""Corfu's machines against a dictionary, and what its frames carry."""

from collections.abc import Callable
from typing import Any

import pytest
from benchmarks.erwin.corfu.codec import CODEC
from benchmarks.erwin.corfu.counter import Counter
from benchmarks.erwin.corfu.messages import Found, Granted, Next, Read, Write, Written
from benchmarks.erwin.corfu.replica import CorfuReplica
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.errors import StorageFailed
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.machine import Persist, Persisted, PersistFailed, Reply, Request, Requests
from anabranch.core.records.record import Record, encode

BATCHES = [encode([Record(value)], now=1) for value in (b"one", b"two", b"three")]
WRITTEN = Written()


class Disk:
    """Drives a replica, whose journal it keeps."""

    def __init__(self, *, fsync: bool, entries: list[bytes] | None = None) -> None:
        self.replica = CorfuReplica(Limits(), fsync=fsync)
        self.entries = entries or []
        self.group: list[bytes] = []
        self.replies: dict[int, Any] = {}
        for index, entry in enumerate(self.entries, 1):
            self.replica.replayed(index, entry)
        self.replica.start(0)

    def give(self, event: Any) -> None:
        for effect in self.replica.step(0, event):
            match effect:
                case Reply(token, message):
                    self.replies[token] = message
                case Persist(entries):
                    assert not self.group, "one group at a time"
                    self.group = list(entries)
                case _:
                    """Timers of retries."""

    def sync(self) -> None:
        while self.group:
            self.entries += self.group
            self.group = []
            self.give(Persisted(len(self.entries)))


def test_the_counter_grants_every_position_once() -> None:
    counter = Counter()
    granted: list[Any] = []
    for token in range(5):
        granted += counter.step(0, Request(token, Next()))
    assert granted == [Reply(token, Granted(token)) for token in range(5)]


@given(
    writes=st.lists(st.tuples(st.integers(0, 5), st.sampled_from(BATCHES)), max_size=30),
    fsync=st.booleans(),
    syncs=st.lists(st.booleans(), min_size=30, max_size=30),
)
def test_a_replica_is_a_dictionary_whose_entries_are_written_once(
    writes: list[tuple[int, bytes]], fsync: bool, syncs: list[bool]
) -> None:
    disk, model = Disk(fsync=fsync), dict[int, bytes]()
    for token, ((position, batch), sync) in enumerate(zip(writes, syncs, strict=False)):
        disk.give(Requests([token], [Write(position, batch)]))
        if sync:
            disk.sync()
        if model.setdefault(position, batch) != batch:
            assert isinstance(disk.replies[token], Refused)
        elif not fsync:
            assert disk.replies[token] == WRITTEN
    disk.sync()
    assert len(disk.replies) == len(writes)
    # Another life finds in the journal what was acknowledged.
    again = Disk(fsync=fsync, entries=disk.entries)
    for position in range(6):
        again.give(Request(position, Read(position)))
        assert again.replies[position] == Found(model.get(position, b""))


def test_with_fsync_a_write_is_answered_when_the_journal_holds_it() -> None:
    disk = Disk(fsync=True)
    disk.give(Request(1, Write(7, BATCHES[0])))
    disk.give(Request(2, Write(7, BATCHES[0])))
    assert disk.replies == {}
    disk.sync()
    assert disk.replies == {1: WRITTEN, 2: WRITTEN}


def test_a_write_that_the_disk_refuses_is_repeated_and_not_answered() -> None:
    disk = Disk(fsync=True)
    disk.give(Request(1, Write(0, BATCHES[0])))
    disk.group = []
    disk.give(PersistFailed(StorageFailed("disk", "it is broken")))
    assert disk.replies == {}


@pytest.mark.parametrize("batch", [b"", BATCHES[0][:-1], b"x" * 80])
def test_a_batch_that_is_none_is_refused(batch: bytes) -> None:
    disk = Disk(fsync=False)
    disk.give(Request(1, Write(0, batch)))
    assert isinstance(disk.replies[1], Refused)
    assert disk.group == []


def test_nodes_refuse_what_another_node_does() -> None:
    counter, disk = Counter(), Disk(fsync=False)
    disk.give(Request(1, Next()))
    assert isinstance(disk.replies[1], Refused)
    for event in (Request(1, Read(0)), Requests([1], [Write(0, BATCHES[0])])):
        (reply,) = counter.step(0, event)
        assert isinstance(reply, Reply)
        assert isinstance(reply.message, Refused)


@pytest.mark.parametrize(
    ("encode_one", "reader", "message"),
    [
        (CODEC.encode_request, lambda: CODEC.requests(1 << 20), Write(9, BATCHES[1])),
        (CODEC.encode_request, lambda: CODEC.requests(1 << 20), Next()),
        (CODEC.encode_request, lambda: CODEC.requests(1 << 20), Read(3)),
        (CODEC.encode_reply, CODEC.replies, Found(BATCHES[2])),
        (CODEC.encode_reply, CODEC.replies, Found(b"")),
        (CODEC.encode_reply, CODEC.replies, Granted(4)),
        (CODEC.encode_reply, CODEC.replies, WRITTEN),
    ],
)
def test_a_message_survives_its_frame(
    encode_one: Callable[[int, Any], list[bytes]], reader: Callable[[], Any], message: Any
) -> None:
    frame = b"".join(encode_one(5, message))
    assert reader().feed(frame) == [(5, message)]
