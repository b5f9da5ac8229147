"""A replica of Corfu: batches at positions, each of which is written once."""

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from anabranch.core.alarms import Alarms
from anabranch.core.errors import AnabranchError, BadRequest
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.machine import (
    Drain,
    Effect,
    Effects,
    Event,
    Gone,
    Persisted,
    PersistFailed,
    Reply,
    Request,
    Requests,
    Rest,
    TimerFired,
    Token,
)
from anabranch.core.records import batch as batches
from anabranch.core.storage.group_journal import GroupJournal
from anabranch.core.types import Nanoseconds, Position
from benchmarks.erwin.corfu.messages import Found, Read, Write, Written

_HEAD = struct.Struct(">q")
_WHAT = "a write to a Corfu replica"
_WRITTEN = Written()


class Entry(NamedTuple):
    position: Position
    batch: bytes


class CorfuReplica:
    """Machine. It keeps all batches in memory: a benchmark writes as many as fit."""

    def __init__(self, limits: Limits, *, fsync: bool) -> None:
        """`fsync`: a write is answered when the journal holds it, and else at once."""
        self.written = 0
        self._limits, self._fsync = limits, fsync
        self._batches: dict[Position, bytes] = {}
        self._effects: list[Effect] = []
        self._alarms = Alarms(self._effects)
        self._journal = GroupJournal[Entry](self._effects, self._alarms, _encode, _stored)

    def recover(self, snapshot: bytes | None) -> None:
        assert snapshot is None, "a replica of Corfu writes no snapshots"

    def replayed(self, index: int, entry: bytes) -> None:
        (position,) = _HEAD.unpack_from(entry)
        self._batches[position] = entry[_HEAD.size :]

    def start(self, now: Nanoseconds) -> Effects:
        self._alarms.now = now
        return ()

    def step(self, now: Nanoseconds, event: Event) -> Effects:
        self._alarms.now = now
        match event:
            case Request(token, message):
                self._asked(token, message)
            case Requests(tokens, messages):
                for token, message in zip(tokens, messages, strict=True):
                    self._asked(token, message)
            case Persisted(last):
                self._journal.persisted(last)
            case PersistFailed(error):
                self._journal.persist_failed(error)
            case TimerFired():
                self._alarms.ring()
            case Gone():
                """Its writes stay."""
            case Drain():
                self._effects.append(Rest())
            case _:
                raise AssertionError(event)
        self._journal.settle()
        effects = tuple(self._effects)
        self._effects.clear()
        return effects

    def _asked(self, token: Token, message: Any) -> None:
        try:
            match message:
                case Write():
                    self._write(token, message)
                case Read(position):
                    self._reply(token, Found(self._batches.get(position, b"")))
                case _:
                    name = type(message).__name__
                    raise BadRequest("a request to a Corfu replica", f"{name} is another node's")
        except AnabranchError as error:
            self._reply(token, Refused.of(error))

    def _write(self, token: Token, message: Write) -> None:
        batches.check(message.batch, self._limits, _WHAT)
        if message.position < 0:
            raise BadRequest(_WHAT, f"{message.position} is no position")
        held = self._batches.get(message.position)
        if held is None:
            self.written += 1
            self._batches[message.position] = message.batch
            self._journal.put(Entry(message.position, message.batch))
        elif held != message.batch:
            raise BadRequest(_WHAT, f"another batch is at position {message.position}")
        if self._fsync:
            # A repeated write waits for the same entry.
            self._journal.when_stored(self._answer(token))
        else:
            self._reply(token, _WRITTEN)

    def _answer(self, token: Token) -> Callable[[], None]:
        return lambda: self._reply(token, _WRITTEN)

    def _reply(self, token: Token, message: Any) -> None:
        self._effects.append(Reply(token, message))


def _encode(entry: Entry) -> bytes:
    return _HEAD.pack(entry.position) + entry.batch


def _stored(index: int, entry: Entry) -> None:
    """Batches are read from memory."""
