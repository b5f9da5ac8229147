"""Which batches of which producers are in a shard's log, so that none is appended twice (spec D4).

Every replica knows it from its log alone: a retry after a fail-over finds what it is a retry of.
Batches that are requests of their own are kept apart: however many come, no producer is forgotten
for them (decision 38).
"""

from typing import NamedTuple

import msgspec

from anabranch.core.errors import RequestReused, SequenceGap
from anabranch.core.machine import Buffer
from anabranch.core.producers import (
    REQUEST_EPOCH,
    SEQUENCE_SPACE,
    Producer,
    is_request,
)
from anabranch.core.records.batch import Header, peek
from anabranch.core.records.digest import UNKNOWN, digest_of_records, matches
from anabranch.core.replication.entries import Item
from anabranch.core.types import LocalSequence


class Known(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A producer, as an image holds it."""

    id: int
    epoch: int
    next: int
    recent: list[tuple[int, LocalSequence, int]]
    digest: int = UNKNOWN
    """Of the records of a batch that is a request."""


class Remembered(NamedTuple):
    """Where the batch of a request is, and what it asked for."""

    first: LocalSequence
    records: int
    digest: int


class Retries:
    """The producers of one shard, in the order in which they were last heard of."""

    def __init__(self, shard: str, producers_max: int) -> None:
        self._shard = shard
        self._producers_max = producers_max
        self._producers: dict[int, Producer] = {}
        self._requests: dict[int, Remembered] = {}
        """The last batches that are requests, oldest first."""
        self.partial = False
        """Some were forgotten, or their batches were trimmed before this replica saw them: one
        that isn't known needn't be new."""

    def find(self, batch: Buffer, header: Header) -> tuple[LocalSequence, int] | None:
        """First place and count of the batch that this one repeats; None: it is new.

        Raises SequenceGap if it can't be its producer's next, and RequestReused if the id of this
        request was used for other records.
        """
        if header.producer_id < 0:
            return None
        if _is_request(header):
            return self._find_request(batch, header)
        producer = self._producers.get(header.producer_id)
        expected = 0
        if producer is not None and producer.epoch == header.producer_epoch:
            place = producer.place(header.base_sequence)
            if place is not None:
                return place
            expected = producer.next
        elif producer is None and self.partial:
            return None
        stale = producer is not None and header.producer_epoch < producer.epoch
        if header.base_sequence != expected or stale:
            got = header.base_sequence
            raise SequenceGap(self._shard, header.producer_id, expected, got)
        return None

    def _find_request(self, batch: Buffer, header: Header) -> tuple[LocalSequence, int] | None:
        known = self._requests.get(header.producer_id)
        if known is None:
            return None
        if not matches(known.digest, digest_of_records(batch, header)):
            raise RequestReused
        return known.first, known.records

    def logged(self, item: Item) -> None:
        if not item.batch:
            return
        header = peek(item.batch)
        if header.producer_id < 0:
            return
        if _is_request(header):
            digest = digest_of_records(item.batch, header)
            self._requests[header.producer_id] = Remembered(item.first, item.count, digest)
            if len(self._requests) > self._producers_max:
                del self._requests[next(iter(self._requests))]
            return
        producer = self._producers.pop(header.producer_id, None)
        if producer is None or producer.epoch != header.producer_epoch:
            producer = Producer(header.producer_epoch, 0)
        self._producers[header.producer_id] = producer
        producer.next = (header.base_sequence + item.count) % SEQUENCE_SPACE
        producer.note(header.base_sequence, item.first, item.count)
        if len(self._producers) > self._producers_max:
            del self._producers[next(iter(self._producers))]
            self.partial = True

    def cut_back(self, to: LocalSequence) -> None:
        """What lies beyond isn't in the log: it may come again, and is then no retry."""
        for id, request in list(self._requests.items()):
            if request.first >= to:
                del self._requests[id]
        for id, producer in list(self._producers.items()):
            void = [sequence for sequence, first, _ in producer.recent if first >= to]
            if not void:
                continue
            producer.recent = [batch for batch in producer.recent if batch[1] < to]
            producer.next = void[0]
            if not producer.recent and void[0] == 0:
                del self._producers[id]

    def image(self) -> list[Known]:
        producers = [
            Known(id=id, epoch=producer.epoch, next=producer.next, recent=list(producer.recent))
            for id, producer in self._producers.items()
        ]
        requests = [
            Known(id=id, epoch=REQUEST_EPOCH, next=count, recent=[(0, first, count)], digest=digest)
            for id, (first, count, digest) in self._requests.items()
        ]
        return producers + requests

    def restore(self, known: list[Known]) -> None:
        assert not self._producers, "an image comes before all items"
        assert not self._requests
        for each in known:
            if each.epoch == REQUEST_EPOCH:
                for _, first, count in each.recent:
                    self._requests[each.id] = Remembered(first, count, each.digest)
                continue
            producer = self._producers[each.id] = Producer(each.epoch, 0)
            producer.next, producer.recent = each.next, list(each.recent)


def _is_request(header: Header) -> bool:
    return is_request(header.producer_id, header.producer_epoch, header.base_sequence)
