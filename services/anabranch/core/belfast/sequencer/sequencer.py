"""A member of the sequencing group: it follows the group's log, and leads when it is elected.

Rules it holds: what is decided is applied when the group's majority holds it, by all members
alike; only the leader has an office, and it goes with the lead; a request that changes something
is answered when that is committed.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any

import msgspec

from anabranch.core.alarms import Alarm, Alarms
from anabranch.core.belfast.ledger.decisions import decode_entry, encode_entry
from anabranch.core.belfast.ledger.ledger import Image, Ledger
from anabranch.core.belfast.ledger.rules import Rules
from anabranch.core.belfast.protocol import checks
from anabranch.core.belfast.protocol.directory import Directories
from anabranch.core.belfast.protocol.letters import Alive, FromReplica, FromSequencer, Leading
from anabranch.core.belfast.protocol.messages import (
    Done,
    Elsewhere,
    Inspect,
    Join,
    Leave,
    Locate,
    Status,
    Trim,
)
from anabranch.core.belfast.sequencer import status
from anabranch.core.belfast.sequencer.broadcast import Feed
from anabranch.core.belfast.sequencer.counters import SequencerCounters
from anabranch.core.belfast.sequencer.policy import Office
from anabranch.core.consensus.consensus import (
    Consensus,
    ConsensusConfig,
    ConsensusLetter,
    ConsensusTiming,
    Recovered,
)
from anabranch.core.consensus.group import KEPT_ENTRIES, SNAPSHOT_ENTRIES
from anabranch.core.errors import AnabranchError, BadRequest, TrimTooFar
from anabranch.core.errors.refused import Refused
from anabranch.core.lateness import Delays
from anabranch.core.limits import Limits
from anabranch.core.machine import (
    Effect,
    Effects,
    Event,
    Reply,
    Request,
    Rest,
    Send,
    Token,
)
from anabranch.core.serving_machine import ServingMachine
from anabranch.core.types import Milliseconds, Nanoseconds

ENTRIES_IN_FLIGHT = 4
"""Proposed and not committed; with so many, cuts wait and become one."""

HANDOVER_MS: Milliseconds = 5_000
"""After which a member that is to end does so, whether another leads or not."""

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(Image).decode


class Sequencer(ServingMachine):
    """A machine."""

    def __init__(
        self,
        node: str,
        members: Sequence[str],
        rules: Rules,
        limits: Limits,
        timing: ConsensusTiming | None = None,
        *,
        kept_entries: int = KEPT_ENTRIES,
        snapshot_entries: int = SNAPSHOT_ENTRIES,
        fsync: bool = True,
    ) -> None:
        """`fsync`: what this member is told is persisted is on its disk."""
        self.node = node
        self.members = tuple(members)
        self.rules = rules
        self.ledger = Ledger()
        self.applied = 0
        """The last entry that the ledger holds."""
        self.counters = SequencerCounters()
        self.office: Office | None = None
        """While this member leads."""
        self._limits = limits
        self._in_memory = set[str]() if fsync else {node}
        """Nodes that don't sync what they store."""
        self._directories = Directories()
        self._status: Status | None = None
        """What `Inspect` was answered with, until the next event that isn't one."""
        self._effects: list[Effect] = []
        self._alarms = Alarms(self._effects)
        consensus = ConsensusConfig(
            node=node,
            members=self.members,
            no_op=encode_entry(()),
            timing=timing or ConsensusTiming(),
            kept_entries=kept_entries,
            snapshot_entries=snapshot_entries,
        )
        self.consensus = Consensus(consensus, self._effects, self._alarms)
        self.consensus.on_commit = self._commit
        self.consensus.on_restore = self._restore
        self.consensus.on_elected = self._lead
        self.consensus.on_deposed = self._step_down
        self.consensus.take_image = self._image
        self._feed: Feed | None = None
        self._proposed = 0
        """The last entry of this lead."""
        self._waiting: deque[tuple[int, Token]] = deque()
        """Who is answered when which entry is committed."""
        self._asking: list[Token] = []
        """The same, for what this step decides."""
        self._wake: Alarm | None = None
        self._wake_at: Nanoseconds = 0
        self._draining = False
        self._rested = False
        self._delays = Delays()
        """Of its own timers, whether it leads or not."""
        self._ran_at: Nanoseconds = 0
        """Up to here it has said when it didn't run."""

    def recover(self, recovered: Recovered) -> None:
        """What the disk held, before `start`."""
        self.consensus.recover(recovered)

    def start(self, now: Nanoseconds) -> Effects:
        self._alarms.now = now
        self.consensus.start()
        return self._settle()

    def step(self, now: Nanoseconds, event: Event) -> Effects:
        asks_again = type(event) is Request and type(event.message) is Inspect
        if now != self._alarms.now or not asks_again:
            self._status = None
        self._alarms.now = now
        if self._alarms.overdue:
            self._was_away(self._alarms.overdue, now)
        self._take(event)
        return self._settle()

    def _persisted(self, last: int) -> None:
        self.consensus.persisted(last)

    def _persist_failed(self, error: AnabranchError) -> None:
        self.consensus.persist_failed(error)

    def _snapshot_saved(self, index: int) -> None:
        self.consensus.snapshot_saved(index)

    def _gone(self, tokens: Sequence[Token]) -> None:
        gone = frozenset(tokens)
        self._waiting = deque(each for each in self._waiting if each[1] not in gone)

    def _linked(self, node: str) -> None:
        self.consensus.linked(node)
        if self._feed is not None:
            self._feed.linked(node)

    def _was_away(self, late: Nanoseconds, now: Nanoseconds) -> None:
        """The timer is late: this member did not run, and others may have spoken meanwhile."""
        missed = now - max(now - late, self._ran_at)
        assert missed >= 0, "time never goes back"
        self._ran_at = now
        self._delays.note(late, now)
        self.consensus.was_away(missed)
        if self.office is not None:
            self.office.was_away(missed, now)

    def _settle(self) -> Effects:
        office = self.office
        if office is not None:
            room = self._proposed - self.consensus.committed < ENTRIES_IN_FLIGHT
            decisions = office.settle(self._alarms.now, room)
            if decisions:
                self._proposed = self.consensus.propose(encode_entry(decisions))
                self.counters.proposals += 1
                self.counters.decisions += len(decisions)
            for token in self._asking:
                self._waiting.append((self._proposed, token))
            self._asking.clear()
        self.consensus.settle()
        if self._feed is not None:
            self._feed.flush()
        self._answer()
        self._set_wake()
        if self._draining and not self._rested and self.office is None:
            self._rest()
        return self._taken()

    def _answer(self) -> None:
        """Who asked for something that is decided already waits for what came before."""
        while self._waiting and self._waiting[0][0] <= self.applied:
            self._effects.append(Reply(self._waiting.popleft()[1], Done()))

    def _received(self, sender: str, letter: object) -> None:
        if isinstance(letter, FromReplica):
            if isinstance(letter, Alive):
                self._note_sync(sender, letter)
            if self.office is not None and self._feed is not None:
                self._heard(self.office, self._feed, sender, letter)
        elif isinstance(letter, ConsensusLetter):  # others are for replicas
            self.consensus.received(sender, letter)

    def _note_sync(self, node: str, letter: Alive) -> None:
        """Whether it leads or not: it may yet."""
        if letter.fsync:
            self._in_memory.discard(node)
        else:
            self._in_memory.add(node)

    def _heard(self, office: Office, feed: Feed, sender: str, letter: FromReplica) -> None:
        office.received(self._alarms.now, sender, letter)
        if isinstance(letter, Alive):
            self._send(sender, Leading(self.consensus.term, self.rules, office.idleness.at_rest))
            if letter.applied >= 0:
                feed.asked(sender, letter.applied)

    def _send(self, node: str, letter: FromSequencer) -> None:
        self._effects.append(Send(node, letter))

    def _asked(self, token: Token, message: Any) -> None:
        match message:
            case Locate():
                leader = self.consensus.leader or ""
                found = self._directories.of(self.ledger, self.applied, leader)
                self._effects.append(Reply(token, found))
            case Inspect() | Join() | Leave() | Trim():
                if self.office is None:
                    self._effects.append(Reply(token, Elsewhere(self._other_leader)))
                else:
                    self._asked_leader(self.office, token, message)
            case _:
                self._refuse(
                    token,
                    BadRequest(
                        f"{type(message).__name__.lower()} at {self.node}",
                        "it is a sequencer: ask a shard; any node says where they are",
                    ),
                )

    def _asked_leader(
        self, office: Office, token: Token, message: Inspect | Join | Leave | Trim
    ) -> None:
        try:
            checks.check(message)
        except BadRequest as error:
            self._refuse(token, error)
            return
        match message:
            case Inspect():
                self._effects.append(Reply(token, self._inspect(office)))
            case Leave(shard):
                self._promise(token, office.leave(shard))
            case Join(shard):
                self._promise(token, office.join(shard, self._alarms.now))
            case Trim(position):
                confirmed = self.ledger.confirmed
                if position > confirmed:
                    self._promise(token, TrimTooFar(position, confirmed))
                    return
                if position > office.plan.ledger.trimmed:
                    office.trim(position)
                self._promise(token, None)

    def _promise(self, token: Token, error: AnabranchError | None) -> None:
        if error is None:
            self._asking.append(token)
        else:
            self._refuse(token, error)

    def _refuse(self, token: Token, error: AnabranchError) -> None:
        self._effects.append(Reply(token, Refused.of(error)))

    @property
    def _other_leader(self) -> str:
        leader = self.consensus.leader
        return leader if leader is not None and leader != self.node else ""

    def _inspect(self, office: Office) -> Status:
        """Many who ask at once get the same: it takes long to make where there are many shards."""
        if self._status is None:
            self._status = self._found(office)
        return self._status

    def _found(self, office: Office) -> Status:
        return status.status(
            self.ledger,
            office,
            self.consensus,
            self._alarms.now,
            members=self.members,
            index=self.applied,
            in_memory=self._in_memory,
        )

    def _commit(self, index: int, entry: bytes) -> None:
        assert index > self.applied, "an entry is applied once"
        self.ledger.apply(decode_entry(entry))
        self.applied = index
        if self._feed is not None:
            self._feed.committed(index, entry)

    def _restore(self, index: int, image: bytes) -> None:
        assert index >= self.applied, "nothing that was applied is taken back"
        self.ledger = Ledger(_unpack(image))
        self.applied = index

    def _image(self) -> bytes:
        return _pack(self.ledger.image())

    def _lead(self) -> None:
        assert self.office is None, "one lead at a time"
        self.counters.leads += 1
        self._proposed = self.consensus.committed
        self._feed = Feed(self.consensus, self.ledger, self.applied, self._effects, self.counters)
        self.office = Office(
            ledger=self.ledger,
            rules=self.rules,
            term=self.consensus.term,
            now=self._alarms.now,
            send=self._send,
            counters=self.counters,
            delays=self._delays,
        )

    def _step_down(self) -> None:
        assert self.office is not None, "only a leader is deposed"
        self.office = self._feed = None
        for _, token in self._waiting:
            self._effects.append(Reply(token, Elsewhere(self._other_leader)))
        for token in self._asking:
            self._effects.append(Reply(token, Elsewhere(self._other_leader)))
        self._waiting.clear()
        self._asking.clear()

    def _set_wake(self) -> None:
        """One alarm, for what the office is to do next."""
        wake_at = self.office.wake_at if self.office is not None else 0
        if wake_at == self._wake_at and self._wake is not None and self._wake.action is not None:
            return
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None
        self._wake_at = wake_at
        if self.office is not None:
            self._wake = self._alarms.at(wake_at, self._woken)

    def _woken(self) -> None:
        """The office looks at the time itself, at the end of the step."""

    def _drain(self) -> None:
        if self._draining:
            return
        self._draining = True
        self.consensus.resign()
        self._alarms.after(HANDOVER_MS, self._rest)

    def _rest(self) -> None:
        if not self._rested:
            self._rested = True
            self._effects.append(Rest())
