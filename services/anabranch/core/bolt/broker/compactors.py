"""Compactors at a broker: their PUTs are signed, and each copy is read back before it counts.

Whoever wrote a copy isn't trusted: the originals are deleted once it has taken their place, and a
job's machines may be any. So the broker reads the whole object and tells the metadata the sums that
it found itself (decision 83).
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec.structs import replace

from anabranch.core.bolt.broker.checked_copies import CheckedCopy, check_copy, copy_bytes_max
from anabranch.core.bolt.broker.context import BrokerContext
from anabranch.core.bolt.broker.control_requests import ControlRequests
from anabranch.core.bolt.broker.inquiries import Correspondence
from anabranch.core.bolt.broker.pending import Wait, Waits
from anabranch.core.bolt.broker.scans import sealer
from anabranch.core.bolt.protocol.commands import Outcome
from anabranch.core.bolt.protocol.compaction import COPIED_MAX, SwapExtents, Swapped
from anabranch.core.bolt.protocol.compactors import (
    SHA256_BYTES,
    SIGNED_COPIES_MAX,
    AdoptCopy,
    Adopted,
    Compactor,
    EndCompactor,
    FindCompactor,
    ListCompactors,
    NewCopy,
    RegisterCompactor,
    RenewCompactor,
    SignCopies,
    SignedCopies,
    SignedCopy,
    TakeCopies,
    TakenCopies,
    compactor_key,
)
from anabranch.core.bolt.protocol.queries import Answer
from anabranch.core.errors import (
    AnabranchError,
    BadRequest,
    BrokerFenced,
    CompactorEnded,
    Damage,
    Mistake,
    Overloaded,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import (
    GetFailed,
    GetObject,
    ObjectRead,
    PutsSigned,
    SignFailed,
    SignPuts,
    Token,
)
from anabranch.core.records.objects import EPOCHS, SEQUENCES, object_id
from anabranch.core.types import MS, Milliseconds, ObjectId

ADOPTIONS_MAX = 64
"""Copies that wait for their turn; they are read back one at a time."""
ATTEMPTS_MAX = 4
BACKOFF_MS = 50
"""Before the second GET; doubled before each further one."""


class _Adoption:
    """A copy that is being read back, or waits for it."""

    __slots__ = ("attempts", "damaged", "message", "object", "wait")

    def __init__(self, wait: Wait, message: AdoptCopy) -> None:
        self.wait = wait
        self.message = message
        self.object = object_id(message.compactor, message.sequence)
        self.attempts = 0
        self.damaged = False
        """What came once already wasn't a copy."""


class ServingCompactors:
    """What is under way for compactors here."""

    def __init__(
        self,
        context: BrokerContext,
        *,
        requests: ControlRequests,
        correspondence: Correspondence,
        waits: Waits,
    ) -> None:
        self._cluster = context.cluster
        self._limits = context.limits
        self._outbox = context.outbox
        self._alarms = context.alarms
        self._requests = requests
        self._correspondence = correspondence
        self._waits = waits
        self._signing: dict[Token, tuple[Wait, list[ObjectId], Milliseconds]] = {}
        self._queue: deque[_Adoption] = deque()
        self._adopting: _Adoption | None = None
        self._tokens: Token = 0
        """Negative: all others of a broker are positive."""

    def table(self) -> dict[type, Callable[[Token, Any], None]]:
        """Which request is answered by which method."""
        return {
            RegisterCompactor: self.register,
            RenewCompactor: self.do,
            EndCompactor: self.do,
            ListCompactors: self.list,
            TakeCopies: self.take,
            SignCopies: self.sign,
            AdoptCopy: self.adopt,
        }

    def owns(self, token: Token) -> bool:
        """Was it this part that asked the store?"""
        return token < 0

    def register(self, token: Token, message: RegisterCompactor) -> None:
        self._requests.propose_once(token, message.request, replace(message, request=b""))

    def do(self, token: Token, message: RenewCompactor | EndCompactor) -> None:
        """To do it twice does it once."""
        self._requests.propose(token, message)

    def list(self, token: Token, message: ListCompactors) -> None:
        self._requests.ask(token, message)

    def take(self, token: Token, message: TakeCopies) -> None:
        self._requests.ask(token, message, self._taken)

    def sign(self, token: Token, message: SignCopies) -> None:
        refusal = self._unsignable(message)
        if refusal is not None:
            self._outbox.refuse(token, refusal)
            return
        query = FindCompactor(message.compactor)
        self._requests.ask(token, query, partial(self._found, message))

    def signed(self, event: PutsSigned) -> None:
        wait, objects, valid_ms = self._signing.pop(event.token)
        assert len(event.targets) == len(objects), "each object has its target"
        found = [
            SignedCopy(object, target.url, target.headers)
            for object, target in zip(objects, event.targets, strict=True)
        ]
        self._requests.answer(wait, SignedCopies(found, valid_ms))

    def failed_to_sign(self, event: SignFailed) -> None:
        assert self.owns(event.token), "somebody else asked for it"
        wait, _, _ = self._signing.pop(event.token)
        self._requests.answer(wait, Refused.of(event.error))

    def adopt(self, token: Token, message: AdoptCopy) -> None:
        refusal = _unadoptable(message, copy_bytes_max(self._limits))
        if refusal is None and len(self._queue) >= ADOPTIONS_MAX:
            refusal = Overloaded("copies to be read back", ADOPTIONS_MAX, "ADOPTIONS_MAX")
        if refusal is not None:
            self._outbox.refuse(token, refusal)
            return
        wait = self._waits.begin(token)
        if wait is not None:
            self._queue.append(_Adoption(wait, message))
            self._next()

    def read_back(self, event: ObjectRead) -> None:
        adoption = self._adopting
        assert adoption is not None, "one copy is read back at a time"
        message = adoption.message
        self._outbox.counters.gets_bytes += len(event.content)
        self._outbox.counters.adopted_bytes += len(event.content)
        self._outbox.usage.read([(message.log, len(event.content))])
        checked = check_copy(self._cluster, message, event.content)
        if checked.fault and not adoption.damaged:
            # Bytes that were spoilt on their way are whole when they come again.
            adoption.damaged = True
            self._get(adoption)
            return
        self._propose(adoption, checked)

    def failed(self, event: GetFailed) -> None:
        """What isn't there may yet come: the compactor is told so, and nothing is decided."""
        adoption = self._adopting
        assert adoption is not None, "one copy is read back at a time"
        hopeless = isinstance(event.error, Damage | Mistake)
        if hopeless or adoption.attempts >= ATTEMPTS_MAX or adoption.wait.over:
            error = event.error
            if isinstance(error, Damage):
                # Not one that a log refers to: whoever wrote it didn't, or wrote less.
                message = adoption.message
                what = f"object {message.sequence} of compactor {message.compactor}"
                reason = f"it isn't there, or has fewer than {message.size} bytes: write it first"
                error = BadRequest(what, reason)
            self._answer(adoption, Refused.of(error))
            return
        delay_ms = BACKOFF_MS << (adoption.attempts - 1)
        self._alarms.after(delay_ms, lambda: self._get(adoption))

    def _next(self) -> None:
        while self._adopting is None and self._queue:
            adoption = self._queue.popleft()
            if not adoption.wait.over:
                self._adopting = adoption
                self._get(adoption)

    def _get(self, adoption: _Adoption) -> None:
        assert self._adopting is adoption, "it is this one's turn"
        assert adoption.attempts <= ATTEMPTS_MAX, "it was given up"
        adoption.attempts += 1
        self._tokens -= 1
        self._outbox.counters.gets += 1
        get = GetObject(self._tokens, adoption.object, 0, adoption.message.size)
        self._outbox.effects.append(get)

    def _propose(self, adoption: _Adoption, checked: CheckedCopy) -> None:
        """A copy that holds something else takes the place of nothing, and so is garbage."""
        assert self._adopting is adoption, "one copy is read back at a time"
        message = adoption.message
        key = compactor_key(message.compactor)
        extents, joined = ([], []) if checked.fault else (checked.extents, checked.joined)
        command = SwapExtents(key, adoption.object, message.log, extents, joined)
        adoption.wait.in_doubt = True
        told = partial(self._proposed, adoption, checked.fault)
        self._correspondence.propose(b"", command, told)

    def _proposed(self, adoption: _Adoption, fault: str, outcome: Outcome) -> None:
        if isinstance(outcome, Swapped):
            why = fault if fault and outcome.why else outcome.why
            self._outbox.counters.copies_adopted += not why
            self._outbox.counters.copies_refused += bool(why)
            self._answer(adoption, Adopted(outcome.fewer, why))
            return
        assert isinstance(outcome, Refused), "a swap is answered with what became of it"
        if outcome.code == BrokerFenced.code:
            reason = "its epoch isn't alive"
            outcome = Refused.of(CompactorEnded(adoption.message.compactor, reason))
        self._answer(adoption, outcome)

    def _answer(self, adoption: _Adoption, answer: Adopted | Refused) -> None:
        assert self._adopting is adoption, "each copy is answered once"
        self._adopting = None
        self._requests.answer(adoption.wait, answer)
        self._next()

    def _taken(self, wait: Wait, answer: Answer) -> None:
        if isinstance(answer, TakenCopies):
            seal = sealer(answer.secret)
            seals = b"".join(
                seal(each.object, each.offset, each.length)
                for copy in answer.copies
                for each in copy.extents
            )
            answer = replace(answer, seals=seals, secret=b"")
        self._requests.answer(wait, answer)

    def _found(self, message: SignCopies, wait: Wait, answer: Answer) -> None:
        """However late the answer came: no URL outlives the lease that it told of."""
        if wait.over:
            return
        if not isinstance(answer, Compactor):
            self._requests.answer(wait, answer)
            return
        left_ms = answer.expires - self._alarms.now // MS
        valid_ms = min(self._limits.signed_url_ms, left_ms)
        if valid_ms <= 0:
            ended = CompactorEnded(answer.id, "its lease was over before it was renewed")
            self._requests.answer(wait, Refused.of(ended))
            return
        objects = [object_id(message.compactor, each.sequence) for each in message.copies]
        self._tokens -= 1
        self._signing[self._tokens] = wait, objects, valid_ms
        self._outbox.counters.copies_signed += len(objects)
        contents = [
            (object, each.size, each.sha256)
            for object, each in zip(objects, message.copies, strict=True)
        ]
        self._outbox.effects.append(SignPuts(self._tokens, contents, valid_ms))

    def _unsignable(self, message: SignCopies) -> AnabranchError | None:
        count = len(message.copies)
        if not 0 < count <= SIGNED_COPIES_MAX:
            reason = f"1 to {SIGNED_COPIES_MAX} can be signed at a time"
            return BadRequest(f"{count} objects of a compactor", reason)
        for each in message.copies:
            refusal = _unnamable(message.compactor, each.sequence) or self._unfit(each)
            if refusal is not None:
                return refusal
        return None

    def _unfit(self, copy: NewCopy) -> AnabranchError | None:
        limit = copy_bytes_max(self._limits)
        if not 0 < copy.size <= limit:
            reason = f"1 to {limit} were expected (object_bytes_max, and its footer)"
            return BadRequest(f"an object of {copy.size} bytes", reason)
        if len(copy.sha256) != SHA256_BYTES:
            return BadRequest("the SHA-256 of an object", f"it has {SHA256_BYTES} bytes")
        return None


def _unnamable(compactor: int, sequence: int) -> AnabranchError | None:
    if not 0 < compactor < EPOCHS:
        return CompactorEnded(compactor, "there never was such a compactor")
    if not 0 < sequence < SEQUENCES:
        return BadRequest(f"object {sequence} of a compactor", "they are counted from 1")
    return None


def _unadoptable(message: AdoptCopy, bytes_max: int) -> AnabranchError | None:
    refusal = _unnamable(message.compactor, message.sequence)
    if refusal is not None:
        return refusal
    if not 0 < message.size <= bytes_max:
        reason = f"1 to {bytes_max} were expected (object_bytes_max, and its footer)"
        return BadRequest(f"a copy of {message.size} bytes", reason)
    if len(message.extents) > COPIED_MAX:
        reason = f"a copy has {COPIED_MAX} at most: name them as they were taken"
        return BadRequest(f"a copy of {len(message.extents)} extents", reason)
    return None
