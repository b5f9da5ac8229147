"""How a member takes appends: known or new, at once or when the ring has room (LazyLog, 4.1)."""

from collections import deque
from typing import NamedTuple

from anabranch.core.askers import asker_of, principal_of
from anabranch.core.budget import Budget
from anabranch.core.errors import (
    AnabranchError,
    BadRequest,
    OutcomeUnknown,
    Overloaded,
    Unavailable,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import Replies, Reply, Token
from anabranch.core.records import batch as batches
from anabranch.core.sequencing.member import Member
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.protocol.messages import Append, AppendMeta, Taken
from anabranch.core.sequencing.state.ring import Entry
from anabranch.core.sequencing.state.state import digest_of_entry

_WHAT = "an append to this log"
_TAKEN = Taken()


class Waiting(NamedTuple):
    """An append that came while the ring was full."""

    token: Token
    view: int
    lowest: int
    entry: Entry


class Appends:
    """Acknowledges an append when it is stored. What comes while the ring is full is held back, in
    order, so that its client needn't send it again.
    """

    def __init__(self, member: Member) -> None:
        self.waited = 0
        """Appends that found the ring full."""
        self._member = member
        self._waiting: deque[Waiting] = deque()
        self._room = Budget(member.limits.ring_waiting_bytes_max)
        """Shared by those whose appends wait."""
        self._live: set[Token] = set()
        """Of those that wait, whose client hasn't left."""
        self._askers: dict[AppendId, tuple[Entry, list[Token]]] = {}
        """Of appends that are being stored."""
        self._answered: tuple[list[Token], list[Taken]] = ([], [])
        """To be sent at the end of the step."""

    def __len__(self) -> int:
        return len(self._waiting) + len(self._askers)

    @property
    def waiting_bytes(self) -> int:
        return self._room.used

    def append(self, token: Token, message: Append) -> None:
        """Raises what stands in the way."""
        member = self._member
        if member.config.data_on_shards:
            raise BadRequest("an append", "this log's batches go to its shards")
        member.check_view(_WHAT, message.view)
        header = batches.check(message.batch, member.limits, _WHAT)
        if header.producer_id < 0:
            raise BadRequest("an append", "its batch names no producer")
        id = AppendId.of(header)
        entry = Entry(id, header.count, len(message.batch), batch=message.batch)
        self._ask(Waiting(token, message.view, message.lowest, entry))

    def append_meta(self, token: Token, message: AppendMeta) -> None:
        """Raises what stands in the way. `checks` has bounded all parts of the message."""
        member = self._member
        if not member.config.data_on_shards:
            raise BadRequest("an append's id", "this log's batches come with it")
        member.check_view(_WHAT, message.view)
        limits = member.limits
        if message.size > limits.batch_bytes_max or message.count > limits.batch_records_max:
            raise BadRequest("an append's id", "no batch is as large as it says")
        digest = int.from_bytes(message.digest)
        entry = Entry(message.id, message.count, message.size, shard=message.shard, digest=digest)
        self._ask(Waiting(token, message.view, message.lowest, entry))

    def retry(self) -> None:
        """The ring may have room, or the view may have ended."""
        while self._waiting:
            first = self._waiting[0]
            live = first.token in self._live
            if live and self._member.takes and self._full(first.entry):
                return
            self._waiting.popleft()
            self._live.discard(first.token)
            self._room.give(asker_of(first.token), first.entry.cost)
            self._member.waiting -= first.entry.count
            assert self._member.waiting >= 0
            if live:
                self._answer(first)

    def adopt(self, entry: Entry, taken: list[Entry]) -> bool:
        """Take what another member has, and no client asks for here. False: it is never taken.
        `taken` gets what wasn't here.

        An append that isn't acknowledged yet may be taken at any time.
        """
        member = self._member
        if entry.id in member.state.ring or member.state.known.position(entry.id) is not None:
            return True
        if self._waiting or self._full(entry) or member.journal.obstacle is not None:
            return True  # not now: the other member asks again
        try:
            known = member.state.known.find(entry.id, 0, digest_of_entry(entry))
        except AnabranchError as error:
            return error.may_pass
        if known:
            return False
        self._askers[entry.id] = entry, []
        member.add(entry, 0)
        taken.append(entry)
        return True

    def stores(self, id: AppendId) -> bool:
        """Is it being stored?"""
        return id in self._askers

    def stored(self, entry: Entry) -> bool:
        """It is stored. False: in a view that has ended since."""
        storing = self._askers.get(entry.id)
        # The same append may come again in a view that began without it.
        if storing is None or storing[0] is not entry:
            return False
        del self._askers[entry.id]
        self._taken(storing[1], entry.shard)
        return True

    def drop(self, token: Token) -> None:
        """Its client has left. What is in the ring stays there."""
        self._live.discard(token)

    def restart(self) -> None:
        """Another view begins. What was being stored may be in its ring or not: clients don't take
        this for a refusal.
        """
        reason = f"view {self._member.number} ended before it was stored"
        unknown = Refused.of(OutcomeUnknown(_WHAT, reason, "send it again under its id"))
        for _, tokens in self._askers.values():
            self._member.effects += [Reply(token, unknown) for token in tokens]
        self._askers.clear()

    def settle(self) -> None:
        tokens, messages = self._answered
        if len(tokens) == 1:
            self._member.effects.append(Reply(tokens[0], messages[0]))
        elif tokens:
            self._member.effects.append(Replies(tokens, messages))
        if tokens:
            self._answered = ([], [])

    def _ask(self, asked: Waiting) -> None:
        id = asked.entry.id
        if asked.lowest > id.sequence:
            reason = f"{asked.lowest} isn't from 0 up to its sequence {id.sequence}"
            raise BadRequest("an append's lowest sequence", reason)
        if self._repeats(asked):
            return
        obstacle = self._member.journal.obstacle
        if obstacle is not None:
            raise Unavailable(_WHAT, obstacle)
        if self._waiting or self._full(asked.entry):
            self._wait(asked)
        else:
            self._take(asked)

    def _answer(self, waiting: Waiting) -> None:
        try:
            self._member.check_view(_WHAT, waiting.view)
            if not self._repeats(waiting):
                self._take(waiting)
        except AnabranchError as error:
            self._member.effects.append(Reply(waiting.token, Refused.of(error)))

    def _repeats(self, asked: Waiting) -> bool:
        """Is this append known, so that its client is answered at once or with those before?"""
        state, entry = self._member.state, asked.entry
        id = entry.id
        if not state.known.find(id, asked.lowest, digest_of_entry(entry)) and id not in state.ring:
            return False
        state.known.heard(id, asked.lowest, self._member.alarms.now)
        storing = self._askers.get(id)
        if storing is not None:
            storing[1].append(asked.token)
        elif (held := state.ring.get(id)) is not None:
            self._taken([asked.token], held.shard)
        else:
            # Perhaps this member has never had the append, and knows it from its drop alone. Until
            # the drop is on the disk, a crash forgets both, and the next view may begin with what
            # this member holds (4.5): nobody may count on it before.
            shard = state.known.shard(id)
            self._member.journal.when_stored(lambda: self._taken([asked.token], shard))
        return True

    def _taken(self, tokens: list[Token], shard: str) -> None:
        taken = Taken(shard) if shard else _TAKEN
        self._answered[0].extend(tokens)
        self._answered[1].extend([taken] * len(tokens))

    def _take(self, asked: Waiting) -> None:
        assert asked.entry.id not in self._askers
        self._askers[asked.entry.id] = asked.entry, [asked.token]
        self._member.add(asked.entry, asked.lowest, principal_of(asked.token))

    def _wait(self, asked: Waiting) -> None:
        if not self._room.take(asker_of(asked.token), asked.entry.cost):
            what = "this client's share of appends that wait to be ordered"
            raise Overloaded(what, self._room.limit, "ring_waiting_bytes_max")
        self.waited += 1
        self._member.waiting += asked.entry.count
        self._waiting.append(asked)
        self._live.add(asked.token)

    def _full(self, entry: Entry) -> bool:
        ring = self._member.state.ring
        return bool(ring) and ring.bytes + entry.cost > self._member.limits.ring_bytes_max
