"""Traces of appends and reads, taken from what machines are given and what they decide.

A machine doesn't know: it is wrapped, and what it answers says what belonged together. Everything
about one object is one trace, whose ids are derived from the object's: so broker and metadata
agree on them, and on which objects are traced, without a word between them.

    object      from the first append in it until its records have their places
      append    from a request until its answer; in the client's own trace, if it named one
      put       the object's way to the store
      commit    what the metadata were asked, until they answered
        journal   the same at the metadata: queued, journaled, applied
    read        from a request until its answer
      resolve   what the metadata were asked
      get       what the store was asked
"""

from collections.abc import Callable
from hashlib import blake2b
from zlib import crc32

from anabranch.core.bolt.protocol.commands import CommitObject
from anabranch.core.bolt.protocol.letters import Applied, Ask, Propose, QueryAnswer
from anabranch.core.bolt.protocol.messages import Append, Read
from anabranch.core.machine import (
    Effects,
    Event,
    GetFailed,
    GetObject,
    Gone,
    Machine,
    ObjectPut,
    ObjectRead,
    PutFailed,
    PutObject,
    Received,
    Replies,
    Reply,
    Request,
    Requests,
    Send,
    Token,
)
from anabranch.core.types import Nanoseconds, ObjectId
from anabranch.shell.runtime.randomness import randbits
from anabranch.shell.telemetry.otlp import Context, Span

OPEN_MAX = 100_000
"""Requests whose beginning is remembered; more are not traced."""
_SPAN_BYTES = 8
_TRACE_BYTES = 16

Export = Callable[[Span], None]


class Choice:
    """Which objects are traced, and by what names: the same in every process of a cluster."""

    def __init__(self, cluster: str, one_in: int) -> None:
        self._cluster = cluster
        self._one_in = one_in
        self._reads = 0

    def traces(self, object: ObjectId) -> bool:
        return crc32(b"%d" % object) % self._one_in == 0

    def trace(self, object: ObjectId) -> int:
        return self._derived(f"{object}", _TRACE_BYTES)

    def span(self, object: ObjectId, name: str) -> int:
        return self._derived(f"{object} {name}", _SPAN_BYTES)

    def a_read(self) -> bool:
        self._reads += 1
        return self._reads % self._one_in == 0

    def _derived(self, what: str, size: int) -> int:
        digest = blake2b(f"{self._cluster} {what}".encode(), digest_size=size).digest()
        return int.from_bytes(digest, "big") or 1


class TracedMember:
    """A metadata member: what happens between a commit's arrival and its answer."""

    def __init__(self, machine: Machine, choice: Choice, export: Export) -> None:
        self._machine = machine
        self._choice = choice
        self._export = export
        self._commits: dict[tuple[str, int], tuple[Nanoseconds, ObjectId]] = {}

    def start(self, now: Nanoseconds) -> Effects:
        return self._machine.start(now)

    def step(self, now: Nanoseconds, event: Event) -> Effects:
        match event:
            case Received(sender, Propose(token, _, CommitObject(_, object))):
                if self._choice.traces(object) and len(self._commits) < OPEN_MAX:
                    self._commits.setdefault((sender, token), (now, object))
            case _:
                pass  # only commits are traced here
        effects = self._machine.step(now, event)
        if self._commits:
            for effect in effects:
                match effect:
                    case Send(to, Applied(token)) if (to, token) in self._commits:
                        self._answered(now, to, *self._commits.pop((to, token)))
                    case _:
                        continue
        return effects

    def _answered(
        self, now: Nanoseconds, broker: str, since: Nanoseconds, object: ObjectId
    ) -> None:
        trace, above = self._choice.trace(object), self._choice.span(object, "commit")
        attributes: dict[str, str | int] = {"broker": broker, "object": object}
        self._export(Span("journal", trace, randbits(64), above, since, now, attributes))


class TracedBroker:
    """A broker: appends by the object they went into, reads by what they had to ask."""

    def __init__(
        self,
        machine: Machine,
        choice: Choice,
        export: Export,
        named: Callable[[Token], Context | None],
    ) -> None:
        self._machine = machine
        self._choice = choice
        self._export = export
        self._named = named
        self._appends: dict[Token, tuple[Nanoseconds, Append]] = {}
        self._objects: dict[ObjectId, Nanoseconds] = {}
        self._puts: dict[ObjectId, Nanoseconds] = {}
        self._commits: dict[int, tuple[Nanoseconds, ObjectId]] = {}
        self._reads: dict[Token, tuple[Nanoseconds, Read, Context]] = {}
        self._asked: dict[int, tuple[Nanoseconds, Context]] = {}
        self._gets: dict[Token, tuple[Nanoseconds, Context, GetObject]] = {}

    def start(self, now: Nanoseconds) -> Effects:
        return self._machine.start(now)

    def step(self, now: Nanoseconds, event: Event) -> Effects:
        cause, object = self._given(now, event)
        effects = self._machine.step(now, event)
        for effect in effects:
            match effect:
                case Replies(tokens):
                    for token in tokens:
                        self._replied(now, token, object)
                case Reply(token):
                    self._replied(now, token, object)
                case PutObject(put) if self._choice.traces(put):
                    self._puts.setdefault(put, now)
                    self._objects.setdefault(put, now)
                case Send(_, Propose(token, _, CommitObject(_, committed))):
                    if committed in self._objects:
                        self._commits.setdefault(token, (now, committed))
                case Send(_, Ask(token)) if cause is not None:
                    self._asked.setdefault(token, (now, cause))
                case GetObject(token) if cause is not None:
                    self._gets.setdefault(token, (now, cause, effect))
                case _:
                    continue
        if object is not None:
            self._placed(now, object)
        return effects

    def _given(self, now: Nanoseconds, event: Event) -> tuple[Context | None, ObjectId | None]:
        """The read that this event is about, or the object whose records now have their places."""
        match event:
            case Requests(tokens, messages):
                for token, message in zip(tokens, messages, strict=True):
                    self._asks(now, token, message)
            case Request(token, message):
                return self._asks(now, token, message), None
            case ObjectPut(object):
                self._stored(now, object, "")
            case PutFailed(object, error):
                self._stored(now, object, error.message)
            case Received(_, Applied(token)) if token in self._commits:
                since, object = self._commits.pop(token)
                trace, above = self._choice.trace(object), self._choice.span(object, "object")
                id = self._choice.span(object, "commit")
                self._export(Span("commit", trace, id, above, since, now, {"object": object}))
                # Told a second time, its records had their places before.
                return None, object if object in self._objects else None
            case Received(_, QueryAnswer(token)) if token in self._asked:
                since, cause = self._asked.pop(token)
                self._export(Span("resolve", cause.trace, randbits(64), cause.span, since, now))
                return cause, None
            case ObjectRead(token) if token in self._gets:
                return self._got(now, token, ""), None
            case GetFailed(token, error) if token in self._gets:
                return self._got(now, token, error.message), None
            case Gone(tokens):
                for token in tokens:
                    self._appends.pop(token, None)
                    self._reads.pop(token, None)
            case _:
                pass  # no part of an append or a read
        return None, None

    def _asks(self, now: Nanoseconds, token: Token, message: object) -> Context | None:
        if isinstance(message, Append):
            if len(self._appends) < OPEN_MAX:
                self._appends[token] = now, message
            return None
        if not isinstance(message, Read) or len(self._reads) >= OPEN_MAX:
            return None
        named = self._named(token)
        if named is None and not self._choice.a_read():
            return None
        cause = Context(named.trace if named else randbits(128), randbits(64))
        self._reads[token] = now, message, cause
        return cause

    def _replied(self, now: Nanoseconds, token: Token, object: ObjectId | None) -> None:
        append = self._appends.pop(token, None)
        if append is not None and object is not None:
            self._appended(now, token, *append, object)
        read = self._reads.pop(token, None)
        if read is not None:
            since, message, own = read
            named = self._named(token)
            attributes: dict[str, str | int] = {"log": message.log, "start": message.start}
            above = named.span if named else 0
            self._export(Span("read", own.trace, own.span, above, since, now, attributes))

    def _appended(
        self, now: Nanoseconds, token: Token, since: Nanoseconds, message: Append, object: ObjectId
    ) -> None:
        within = Context(self._choice.trace(object), self._choice.span(object, "object"))
        self._objects[object] = min(self._objects[object], since)
        attributes: dict[str, str | int] = {"log": message.log, "bytes": len(message.batch)}
        named = self._named(token)
        above, links = (named, (within,)) if named else (within, ())
        self._export(
            Span(
                "append",
                above.trace,
                randbits(64),
                above.span,
                since,
                now,
                attributes,
                links=links,
            )
        )

    def _stored(self, now: Nanoseconds, object: ObjectId, failed: str) -> None:
        since = self._puts.pop(object, None)
        if since is not None:
            trace, above = self._choice.trace(object), self._choice.span(object, "object")
            attributes: dict[str, str | int] = {"object": object}
            self._export(Span("put", trace, randbits(64), above, since, now, attributes, failed))

    def _placed(self, now: Nanoseconds, object: ObjectId) -> None:
        since = self._objects.pop(object)
        trace, own = self._choice.trace(object), self._choice.span(object, "object")
        self._export(Span("object", trace, own, 0, since, now, {"object": object}))

    def _got(self, now: Nanoseconds, token: Token, failed: str) -> Context:
        since, cause, asked = self._gets.pop(token)
        attributes: dict[str, str | int] = {"object": asked.object, "bytes": asked.length}
        self._export(
            Span("get", cause.trace, randbits(64), cause.span, since, now, attributes, failed)
        )
        return cause
