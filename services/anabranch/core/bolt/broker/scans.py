"""Scan plans at a broker: what clients ask is handed on, pages are sealed, ranges are signed.

A page names extents as they are when it is asked for, and by the time that a reader wants to fetch
them compaction may have taken them out of the log: nobody could tell any more whether the log ever
had them. So the broker puts a seal on each slice of a page, by a secret that only brokers and the
metadata know, and signs what bears one (decision 75).
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from hashlib import blake2b
from hmac import compare_digest
from typing import Any

from msgspec.structs import replace

from anabranch.core.bolt.broker.context import BrokerContext
from anabranch.core.bolt.broker.control_requests import ControlRequests
from anabranch.core.bolt.broker.pending import Wait
from anabranch.core.bolt.broker.rate_limits import Metering
from anabranch.core.bolt.protocol.queries import Answer, FoundPlan, PlanPage
from anabranch.core.bolt.protocol.scans import (
    SIGNED_SLICES_MAX,
    BeginPlan,
    EndPlan,
    EraseGarbage,
    FindPlan,
    ListPlans,
    PlanId,
    PlanScan,
    ReadPlan,
    RenewPlan,
    SealedSlice,
    SignedRange,
    SignedScan,
    SignScan,
)
from anabranch.core.errors import AnabranchError, BadRequest, NotSealed
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import RangesSigned, SignFailed, SignRanges, Token
from anabranch.core.types import ObjectId

SECRET_BYTES = 16
SEAL_BYTES = 8
_ID_BITS = 62
"""Of a plan's id: positive, and exact in every language that has 64-bit integers."""
_PLACE = struct.Struct(">QQQ")


class Scanning:
    """What is under way of scans here."""

    def __init__(
        self,
        context: BrokerContext,
        *,
        requests: ControlRequests,
        metering: Metering,
    ) -> None:
        self._limits = context.limits
        self._outbox = context.outbox
        self._requests = requests
        self._metering = metering
        self._life = b""
        self._planned = 0
        self._signing: dict[Token, tuple[Wait, list[SignedRange]]] = {}
        self._signs: Token = 0

    def begin(self, life: bytes) -> None:
        """Ids and secrets of plans follow from what no client knows of this life of the broker."""
        self._life = life

    def table(self) -> dict[type, Callable[[Token, Any], None]]:
        """Which request is answered by which method."""
        return {
            PlanScan: self.plan,
            RenewPlan: self.do,
            EndPlan: self.do,
            EraseGarbage: self.erase,
            ReadPlan: self.read,
            ListPlans: self.list,
            SignScan: self.sign,
        }

    def plan(self, token: Token, message: PlanScan) -> None:
        self._planned += 1
        drawn = blake2b(b"plan %d" % self._planned, key=self._life[:64]).digest()
        command = BeginPlan(
            plan=PlanId(1 + (int.from_bytes(drawn[:8]) >> (64 - _ID_BITS))),
            secret=drawn[8 : 8 + SECRET_BYTES],
            log=message.log,
            lease_ms=message.lease_ms,
            start=message.start,
            end=message.end,
            speculative=message.speculative,
            by=message.by,
        )
        self._requests.propose_once(token, message.request, command)

    def erase(self, token: Token, message: EraseGarbage) -> None:
        self._requests.propose_once(token, message.request, EraseGarbage())

    def do(self, token: Token, message: RenewPlan | EndPlan) -> None:
        """To do it twice does it once."""
        self._requests.propose(token, message)

    def list(self, token: Token, message: ListPlans) -> None:
        self._requests.ask(token, message)

    def read(self, token: Token, message: ReadPlan) -> None:
        self._requests.ask(token, message, self._read)

    def sign(self, token: Token, message: SignScan) -> None:
        count = len(message.slices)
        if not 0 < count <= SIGNED_SLICES_MAX:
            reason = f"1 to {SIGNED_SLICES_MAX} can be signed at a time"
            self._outbox.refuse(token, BadRequest(f"{count} slices of a scan plan", reason))
            return
        query = FindPlan(message.log, message.plan)
        self._requests.ask(token, query, partial(self._found, message))

    def signed(self, event: RangesSigned) -> None:
        wait, ranges = self._signing.pop(event.token)
        assert len(event.urls) == len(ranges), "each range has its URL"
        found = [replace(each, url=url) for each, url in zip(ranges, event.urls, strict=True)]
        self._outbox.counters.signed += len(found)
        self._outbox.counters.signed_bytes += sum(each.length for each in found)
        self._requests.answer(wait, SignedScan(found, self._limits.signed_url_ms))

    def failed(self, event: SignFailed) -> None:
        wait, _ = self._signing.pop(event.token)
        self._requests.answer(wait, Refused.of(event.error))

    def _read(self, wait: Wait, answer: Answer) -> None:
        if isinstance(answer, PlanPage):
            seal = sealer(answer.secret)
            seals = b"".join(
                [seal(each.object, each.offset, each.length) for each in answer.slices]
            )
            answer = replace(answer, seals=seals, secret=b"")
        self._requests.answer(wait, answer)

    def _found(self, message: SignScan, wait: Wait, answer: Answer) -> None:
        if wait.over:
            return
        if not isinstance(answer, FoundPlan):
            self._requests.answer(wait, answer)
            return
        self._metering.told([message.log], answer.quotas)
        refusal = _unsealed(message, answer) or self._metering.refuse_read(message.log)
        if refusal is not None:
            self._requests.answer(wait, Refused.of(refusal))
            return
        ranges = [*_joined(message.slices)]
        assert ranges, "`sign` refuses a request without slices"
        self._metering.read(message.log, sum(each.length for each in ranges))
        self._signs += 1
        self._signing[self._signs] = wait, ranges
        places = [(each.object, each.offset, each.length) for each in ranges]
        self._outbox.effects.append(SignRanges(self._signs, places, self._limits.signed_url_ms))


def sealer(secret: bytes) -> Callable[[ObjectId, int, int], bytes]:
    """What proves that somebody was told of bytes under a plan with this secret."""
    assert len(secret) == SECRET_BYTES, "a plan has a secret"
    keyed, pack = blake2b(digest_size=SEAL_BYTES, key=secret), _PLACE.pack

    def seal(object: ObjectId, offset: int, length: int) -> bytes:
        hashed = keyed.copy()
        hashed.update(pack(object, offset, length))
        return hashed.digest()

    return seal


def _unsealed(message: SignScan, found: FoundPlan) -> AnabranchError | None:
    """Why not to sign: one of these slices is of no page."""
    seal = sealer(found.secret)
    for each in message.slices:
        fits = all(0 <= number < 1 << 64 for number in (each.object, each.offset, each.length))
        if fits and 0 <= each.seal < 1 << 8 * SEAL_BYTES:
            expected = seal(each.object, each.offset, each.length)
            if compare_digest(expected, each.seal.to_bytes(SEAL_BYTES)):
                continue
        name = f"{message.plan:016x}"
        last = each.offset + each.length
        return NotSealed(name, found.plan.name, f"{each.object:x}", each.offset, last)
    return None


def _joined(slices: Sequence[SealedSlice]) -> Iterator[SignedRange]:
    """Slices that follow each other without a gap in one object are one range: in a gap lie bytes
    of other logs.
    """
    held: SealedSlice | None = None
    end = 0
    for each in slices:
        if held is not None and each.object == held.object and each.offset == end:
            end += each.length
            continue
        if held is not None:
            yield SignedRange(held.object, held.offset, end - held.offset, "")
        held, end = each, each.offset + each.length
    if held is not None:
        yield SignedRange(held.object, held.offset, end - held.offset, "")
