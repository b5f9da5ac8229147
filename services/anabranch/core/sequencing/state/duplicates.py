"""Which appends a sequencing replica knows, so that none is taken twice (LazyLog, 4.1).

All members of a view have to agree on what they forget: what one takes for new another mustn't
know. So a producer says itself below which sequence it repeats nothing. Only the leader decides
when a silent producer or a request id is forgotten, and drops carry its decision to the others.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from anabranch.core.errors import Overloaded, RequestForgotten, RequestReused
from anabranch.core.limits import Limits
from anabranch.core.producers import REQUEST_EPOCH, is_request
from anabranch.core.records.digest import UNKNOWN, matches
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.types import MS, Nanoseconds, Position

PENDING: Position = -1
"""In place of a position: the append isn't ordered yet."""

_FORGOTTEN_MAX = 1_000
"""The most that one drop forgets."""


class Producer(msgspec.Struct, array_like=True):
    """One producer in its latest epoch."""

    epoch: int
    lowest: int = 0
    """The producer repeats nothing below this sequence."""
    known: dict[int, Position] = {}
    """The positions of its appends from there on."""
    at: Nanoseconds = 0
    """When it was last heard of."""


class Asked(msgspec.Struct, array_like=True):
    """An append under an id that its caller chose."""

    position: Position = PENDING
    digest: int = UNKNOWN
    """Of its records: another append mustn't use the same id."""
    at: Nanoseconds = 0
    shard: str = ""
    """Where its data is, if this member was told."""


class KnownAppends(msgspec.Struct, frozen=True, array_like=True):
    """All that `Duplicates` hold, least recently heard of first."""

    producers: dict[int, Producer] = {}
    requests: dict[int, Asked] = {}


class Duplicates:
    """Whatever isn't known is new; it must not have been known before."""

    def __init__(self, limits: Limits, known: KnownAppends | None = None) -> None:
        self._limits = limits
        self._producers = known.producers if known else {}
        self._requests = known.requests if known else {}
        self._appends = sum(len(each.known) for each in self._producers.values())
        """Of all producers."""

    def __len__(self) -> int:
        return len(self._producers) + len(self._requests)

    def find(self, id: AppendId, lowest: int, digest: int = UNKNOWN) -> bool:
        """Is this append known? False: it is new.

        Raises RequestForgotten for an append that may have been known, RequestReused if the
        request id was used for other records, and Overloaded if no more can be known.
        """
        if _is_request(id):
            return self._find_request(id, digest)
        producer = self._producers.get(id.producer)
        if producer is None and lowest > 0:
            raise RequestForgotten("an append of a producer that was silent for long")
        if producer is None:
            self._check_room(producer)
            return False
        if id.epoch < producer.epoch:
            raise RequestForgotten("an append of an earlier life of its producer")
        if id.epoch > producer.epoch:
            return False
        if id.sequence in producer.known:
            return True
        if id.sequence < producer.lowest:
            # Its producer repeats nothing below. Readers see producer ids, so this may be a client
            # whose id another one has used: it must not take its append for acknowledged.
            raise RequestForgotten("an append below those that its producer repeats")
        self._check_room(producer)
        return False

    def heard(self, id: AppendId, lowest: int, now: Nanoseconds) -> None:
        """Its producer lives, and repeats nothing below `lowest`."""
        if _is_request(id):
            return
        producer = self._latest(id)
        if producer is not None:
            producer.at = now
            self._appends -= _raise_lowest(producer, lowest)
            assert self._appends >= 0

    def add(self, id: AppendId, now: Nanoseconds, digest: int = UNKNOWN, shard: str = "") -> None:
        """It was taken into the ring."""
        if _is_request(id):
            assert id.producer not in self._requests, "it isn't new"
            self._requests[id.producer] = Asked(PENDING, digest, now, shard)
            return
        producer = self._latest(id)
        assert producer is not None, "it is of an earlier epoch"
        producer.at = now
        assert id.sequence not in producer.known, "it isn't new"
        producer.known[id.sequence] = PENDING
        self._appends += 1

    def place(self, id: AppendId, position: Position, now: Nanoseconds, shard: str = "") -> None:
        """It is ordered, whether it was known or not: it may come here after its own drop.

        `shard`: where the row of a request says that its data is. This member may have been told of
        another one, by a client that repeats the request.
        """
        assert position >= 0
        if _is_request(id):
            asked = self._requests.setdefault(id.producer, Asked(at=now))
            asked.position = position
            asked.shard = shard or asked.shard
            return
        assert not shard, "only a request can come with another shard"
        producer = self._latest(id)
        if producer is not None and id.sequence >= producer.lowest:
            producer.at = max(producer.at, now)
            self._appends += id.sequence not in producer.known
            producer.known[id.sequence] = position

    def void(self, id: AppendId) -> None:
        """It left the ring and is never ordered in this view: a repetition is new. Taken for known,
        it would be acknowledged and be in no ring, if the next view begins with this state.
        """
        if _is_request(id):
            asked = self._requests.get(id.producer)
            if asked is not None and asked.position == PENDING:
                del self._requests[id.producer]
            return
        producer = self._producers.get(id.producer)
        if producer is None or producer.epoch != id.epoch:
            return
        if producer.known.get(id.sequence) == PENDING:
            del producer.known[id.sequence]
            self._appends -= 1
            assert self._appends >= 0

    def knows(self, id: AppendId) -> bool:
        if _is_request(id):
            return id.producer in self._requests
        producer = self._producers.get(id.producer)
        if producer is None or producer.epoch != id.epoch:
            return False
        return id.sequence < producer.lowest or id.sequence in producer.known

    def shard(self, id: AppendId) -> str:
        """Where the data of a request is; empty if that isn't known."""
        asked = self._requests.get(id.producer) if _is_request(id) else None
        return asked.shard if asked is not None else ""

    def position(self, id: AppendId) -> Position | None:
        """Where it is; None if it isn't ordered, or not known any more."""
        if _is_request(id):
            asked = self._requests.get(id.producer)
            return asked.position if asked is not None and asked.position != PENDING else None
        producer = self._producers.get(id.producer)
        if producer is None or producer.epoch != id.epoch:
            return None
        position = producer.known.get(id.sequence, PENDING)
        return position if position != PENDING else None

    def forgotten(self, id: AppendId) -> bool:
        """Was it known, and its position isn't any more?"""
        producer = self._producers.get(id.producer)
        if _is_request(id) or producer is None or id.epoch > producer.epoch:
            return False
        return id.epoch < producer.epoch or id.sequence < producer.lowest

    def due(self, now: Nanoseconds, since: Nanoseconds) -> list[AppendId]:
        """What the leader may forget: what nobody repeats after so long a time. It has listened
        since `since`.
        """
        limits = self._limits
        _heed_clock(self._producers, now)
        _heed_clock(self._requests, now)
        idle = now - limits.producer_idle_ms * MS
        if 2 * self._appends > limits.known_appends_max:
            idle = now - limits.request_memory_min_ms * MS
        old = now - limits.request_memory_ms * MS
        if 2 * len(self._requests) > limits.requests_max:
            old = now - limits.request_memory_min_ms * MS
        return [
            *_idle_producers(self._producers, idle if since <= idle else -1),
            *_old_requests(self._requests, old if since <= old else -1),
        ]

    def forget(self, ids: Sequence[AppendId]) -> None:
        for id in ids:
            if _is_request(id):
                self._requests.pop(id.producer, None)
                continue
            producer = self._producers.get(id.producer)
            if producer is not None and producer.epoch <= id.epoch:
                del self._producers[id.producer]
                self._appends -= len(producer.known)
                assert self._appends >= 0

    def image(self) -> KnownAppends:
        return KnownAppends(self._producers, self._requests)

    def _find_request(self, id: AppendId, digest: int) -> bool:
        asked = self._requests.get(id.producer)
        if asked is None:
            if len(self._requests) >= 2 * self._limits.requests_max:
                raise Overloaded(
                    "request ids of this log", self._limits.requests_max, "requests_max"
                )
            return False
        if not matches(asked.digest, digest):
            raise RequestReused
        return True

    def _check_room(self, producer: Producer | None) -> None:
        """Raises Overloaded if no new append of this producer can be known."""
        limits = self._limits
        if producer is None and len(self._producers) >= limits.producers_per_log_max:
            limit = limits.producers_per_log_max
            raise Overloaded("producers of this log", limit, "producers_per_log_max")
        if producer is not None and len(producer.known) >= limits.producer_appends_max:
            limit = limits.producer_appends_max
            raise Overloaded("appends that a producer may repeat", limit, "producer_appends_max")
        if self._appends >= limits.known_appends_max:
            limit = limits.known_appends_max
            raise Overloaded("appends that producers may repeat", limit, "known_appends_max")

    def _latest(self, id: AppendId) -> Producer | None:
        """The producer of this id, moved to the end, in this epoch; None if a later one began."""
        producer = self._producers.pop(id.producer, None)
        if producer is None or producer.epoch < id.epoch:
            self._appends -= len(producer.known) if producer else 0
            producer = Producer(id.epoch, known={})
        self._producers[id.producer] = producer
        return producer if producer.epoch == id.epoch else None


def _is_request(id: AppendId) -> bool:
    return is_request(id.producer, id.epoch, id.sequence)


def _raise_lowest(producer: Producer, lowest: int) -> int:
    """Returns how many appends were forgotten."""
    assert producer.lowest >= 0
    if lowest <= producer.lowest:
        return 0
    producer.lowest = lowest
    known = producer.known
    before = len(known)
    # Sequences mostly come in order. One that came out of it goes when those before it do.
    while known and (first := next(iter(known))) < lowest:
        del known[first]
    return before - len(known)


def _heed_clock(heard: dict[int, Producer] | dict[int, Asked], now: Nanoseconds) -> None:
    """Clocks go back between two lives, and differ between members: nobody was heard later than
    now. Who seems to have been would never be forgotten, nor would anybody behind.
    """
    first = next(iter(heard.values()), None)
    if first is not None and first.at > now:
        for each in heard.values():
            each.at = min(each.at, now)


def _idle_producers(producers: dict[int, Producer], before: Nanoseconds) -> Iterator[AppendId]:
    for id, producer in islice(producers.items(), _FORGOTTEN_MAX):
        if producer.at > before:
            break
        yield AppendId(id, producer.epoch, producer.lowest)


def _old_requests(requests: dict[int, Asked], before: Nanoseconds) -> Iterator[AppendId]:
    for id, asked in islice(requests.items(), _FORGOTTEN_MAX):
        if asked.at > before or asked.position == PENDING:
            break
        yield AppendId(id, REQUEST_EPOCH, 0)
