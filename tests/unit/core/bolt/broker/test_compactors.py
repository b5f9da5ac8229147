"""Compactors at a broker: what is signed for them, how copies are read back (decision 83)."""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from anabranch.core.bolt.broker.broker import Broker
from anabranch.core.bolt.broker.compactors import ADOPTIONS_MAX, ATTEMPTS_MAX
from anabranch.core.bolt.protocol.compaction import Copied, Joined, SwapExtents, Swapped
from anabranch.core.bolt.protocol.compactors import (
    SIGNED_COPIES_MAX,
    AdoptCopy,
    Adopted,
    Compactor,
    CompactorId,
    CopyToMake,
    FindCompactor,
    NewCopy,
    RegisterCompactor,
    RenewCompactor,
    SignCopies,
    TakeCopies,
    TakenCopies,
)
from anabranch.core.bolt.protocol.letters import Applied, QueryAnswer
from anabranch.core.bolt.protocol.scans import PlanId
from anabranch.core.errors import (
    BrokerFenced,
    CompactorEnded,
    NotFetchable,
    ObjectMissing,
    Unavailable,
)
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.machine import (
    Effect,
    GetFailed,
    GetObject,
    Gone,
    ObjectRead,
    PutsSigned,
    PutTarget,
    Received,
    Reply,
    Request,
    Send,
    SetTimer,
    SignFailed,
    SignPuts,
    TimerFired,
)
from anabranch.core.records.objects import lay_out, object_id
from anabranch.core.records.record import Record, encode
from anabranch.core.records.set_sum import set_sum
from anabranch.core.types import MS, LogId

LOG = LogId(7)
EPOCH = CompactorId(3)
NOW_MS, LEASE_MS = 1_000_000, 60_000
ALIVE = Compactor(EPOCH, "a job", NOW_MS - 5, NOW_MS + LEASE_MS)


class Stage:
    """A broker, what it asks of the metadata and of the store."""

    def __init__(self) -> None:
        self.broker = Broker("b", "cluster", Limits(), life=b"a life")
        self.token = 0
        self.now = NOW_MS * MS
        self.timers: dict[str, int] = {}
        self.replies: list[Any] = []
        self.asked: list[Any] = []
        self.signs: list[SignPuts] = []
        self.gets: list[GetObject] = []
        self.take(self.broker.start(self.now))
        self.asked.clear()

    def take(self, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            match effect:
                case Send(_, message):
                    self.asked.append(message)
                case Reply(_, message):
                    self.replies.append(message)
                case SignPuts():
                    self.signs.append(effect)
                case GetObject():
                    self.gets.append(effect)
                case SetTimer(key, at):
                    self.timers[key] = at
                case _:
                    raise AssertionError(effect)

    def tell(self, event: Any) -> None:
        self.take(self.broker.step(self.now, event))

    def wait(self, ms: int) -> None:
        self.now += ms * MS
        for key in [key for key, at in self.timers.items() if at <= self.now]:
            del self.timers[key]
            self.tell(TimerFired(key))

    def request(self, message: object) -> None:
        self.token += 1
        self.tell(Request(self.token, message))

    def told(self, answer: Any) -> Any:
        """The question, which gets this answer."""
        question = self.asked.pop()
        kind = Applied if hasattr(question, "command") else QueryAnswer
        self.tell(Received("metadata", kind(question.token, answer)))
        return question

    def read(self, content: bytes) -> None:
        """The store answers the GET that is under way."""
        self.tell(ObjectRead(self.gets.pop().token, content))


def batch(value: bytes, count: int = 1) -> bytes:
    return encode([Record(value)] * count, now=1)


def copy_of(*extents: Sequence[bytes], cluster: str = "cluster") -> tuple[AdoptCopy, bytes]:
    """An object of these extents, each of some batches, and how it is to be adopted."""
    parts, _ = lay_out(cluster, [(LOG, [each for extent in extents for each in extent])])
    content = b"".join(bytes(part) for part in parts)
    named = [
        Copied(turn, len(each), object_id(1, turn), 0, sum(map(len, each)), set_sum(each))
        for turn, each in enumerate(extents)
    ]
    return AdoptCopy(EPOCH, LOG, 1, len(content), named, [len(named)]), content


A, B, C = batch(b"one"), batch(b"two"), batch(b"three")


def test_a_compactor_is_registered_once_for_its_request() -> None:
    stage = Stage()
    stage.request(RegisterCompactor("a job", 1_000, b"a request of 16!"))
    proposal = stage.told(ALIVE)
    assert proposal.request == b"a request of 16!"
    assert proposal.command == RegisterCompactor("a job", 1_000)
    assert stage.replies.pop() == ALIVE
    stage.request(RenewCompactor(EPOCH, 5))
    assert stage.told(Refused.of(CompactorEnded(3, "why"))).request == b""
    assert stage.replies.pop().code == "compactor-ended"


def test_extents_that_are_taken_are_sealed_as_those_of_the_plans_pages() -> None:
    stage = Stage()
    message, _ = copy_of([A], [B])
    query = TakeCopies(EPOCH, LOG, PlanId(5), 0)
    stage.request(query)
    copies = [CopyToMake(message.extents, [2])]
    assert stage.told(TakenCopies(copies, 2, False, secret=b"s" * 16)).query == query
    answer = stage.replies.pop()
    assert (answer.copies, answer.secret, len(answer.seals)) == (copies, b"", 16)


def sign(stage: Stage, found: Any = ALIVE, *copies: NewCopy) -> None:
    stage.request(SignCopies(EPOCH, [*copies] or [NewCopy(1, 10, b"x" * 32)]))
    assert stage.told(found).query == FindCompactor(EPOCH)


def test_what_is_signed_says_all_about_the_object_and_no_url_outlives_the_lease() -> None:
    stage = Stage()
    sign(stage, ALIVE, NewCopy(1, 10, b"x" * 32), NewCopy(2, 20, b"y" * 32))
    (signs,) = stage.signs
    assert signs.contents == [
        (object_id(EPOCH, 1), 10, b"x" * 32),
        (object_id(EPOCH, 2), 20, b"y" * 32),
    ]
    assert signs.valid_ms == LEASE_MS < Limits().signed_url_ms
    stage.tell(PutsSigned(signs.token, [PutTarget("u", {"h": "v"}), PutTarget("w")]))
    reply = stage.replies.pop()
    assert [(each.url, each.headers) for each in reply.copies] == [("u", {"h": "v"}), ("w", {})]
    assert (reply.valid_ms, stage.broker.counters.copies_signed) == (LEASE_MS, 2)
    sign(stage, replace(ALIVE, expires=NOW_MS + 10 * Limits().signed_url_ms))
    assert stage.signs[-1].valid_ms == Limits().signed_url_ms


def test_nothing_is_signed_for_a_compactor_whose_lease_is_over() -> None:
    stage = Stage()
    sign(stage, replace(ALIVE, expires=NOW_MS))
    assert stage.replies.pop().code == "compactor-ended"
    sign(stage, Refused.of(CompactorEnded(3, "why")))
    assert stage.replies.pop().code == "compactor-ended"
    assert not stage.signs
    sign(stage)
    stage.tell(SignFailed(stage.signs.pop().token, NotFetchable("it keeps them in memory")))
    assert stage.replies.pop().code == "not-fetchable"


@pytest.mark.parametrize(
    "copy",
    [
        NewCopy(0, 10, b"x" * 32),
        NewCopy(1 << 40, 10, b"x" * 32),
        NewCopy(1, 0, b"x" * 32),
        NewCopy(1, Limits().object_bytes_max + (1 << 13), b"x" * 32),
        NewCopy(1, 10, b"x" * 31),
    ],
)
def test_only_objects_that_could_be_copies_are_signed(copy: NewCopy) -> None:
    stage = Stage()
    stage.request(SignCopies(EPOCH, [NewCopy(5, 10, b"x" * 32), copy]))
    assert stage.replies.pop().code == "bad-request"
    for copies in ([], [NewCopy(1, 10, b"x" * 32)] * (SIGNED_COPIES_MAX + 1)):
        stage.request(SignCopies(EPOCH, copies))
        assert stage.replies.pop().code == "bad-request"
    stage.request(SignCopies(CompactorId(1 << 24), [NewCopy(5, 10, b"x" * 32)]))
    assert stage.replies.pop().code == "compactor-ended"
    assert not stage.asked


def test_a_copy_is_read_back_whole_and_swapped_with_the_sums_that_were_read() -> None:
    stage = Stage()
    message, content = copy_of([A, B], [C])
    unknown = replace(message, extents=[replace(each, sum=0) for each in message.extents])
    stage.request(unknown)
    (get,) = stage.gets
    assert (get.object, get.start, get.length) == (object_id(EPOCH, 1), 0, len(content))
    assert not stage.asked, "nothing is decided before"
    stage.read(content)
    size = len(A) + len(B) + len(C)
    proposal = stage.told(Swapped(1))
    assert proposal.command == SwapExtents(
        "compactor/3", object_id(EPOCH, 1), LOG, message.extents, [Joined(2, 0, size)]
    )
    assert stage.replies.pop() == Adopted(1)
    counters = stage.broker.counters
    assert (counters.copies_adopted, counters.adopted_bytes) == (1, len(content))


def spoilt(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def wrong_contents() -> list[tuple[str, bytes]]:
    _, whole = copy_of([A, B], [C])
    found = [
        ("another batch", copy_of([A, B], [batch(b"thrice")])[1]),
        ("extents in another order", copy_of([C], [A, B])[1]),
        ("other records", copy_of([A, B], [batch(b"three", 2)])[1]),
        ("of another cluster", copy_of([A, B], [C], cluster="clvster")[1]),
        ("cut short", whole[:-1]),
    ]
    # Where a batch would lie in a log, and who led it, counts nowhere: readers know that otherwise.
    begins = (0, len(A), len(A) + len(B))
    free = {begin + at for begin in begins for at in (*range(8), *range(12, 16))}
    bits = (at for at in range(0, len(whole), 11) if at not in free)
    found += [(f"bit {at}", spoilt(whole, at)) for at in bits]
    return found


@pytest.mark.parametrize("what", [what for what, _ in wrong_contents()])
def test_what_holds_anything_else_takes_the_place_of_nothing(what: str) -> None:
    content = dict(wrong_contents())[what]
    stage = Stage()
    message, _whole = copy_of([A, B], [C])
    stage.request(message)
    stage.read(content)
    assert not stage.asked, "it may have been spoilt on its way"
    stage.read(content)
    command = stage.told(Swapped(0, "the new extents aren't made of the old ones")).command
    assert (command.extents, command.joined) == ([], [])
    adopted = stage.replies.pop()
    assert (adopted.fewer, bool(adopted.why)) == (0, True)
    assert stage.broker.counters.copies_refused == 1


def test_bytes_that_were_spoilt_on_their_way_are_read_again() -> None:
    stage = Stage()
    message, content = copy_of([A])
    stage.request(message)
    stage.read(spoilt(content, 30))
    stage.read(content)
    assert stage.told(Swapped(0)).command.extents == message.extents


@pytest.mark.parametrize(
    "change",
    [
        {"extents": [], "joined": []},
        {"joined": [2]},
        {"joined": [1, 0]},
        {"joined": [-1, 2]},
    ],
)
def test_a_copy_that_no_object_can_be_is_garbage(change: dict[str, Any]) -> None:
    stage = Stage()
    message, content = copy_of([A])
    stage.request(replace(message, **change))
    stage.read(content)
    stage.read(content)
    assert not stage.told(Swapped(0, "no")).command.extents


def test_an_object_that_isnt_there_yet_is_not_decided_about() -> None:
    stage = Stage()
    message, _ = copy_of([A])
    stage.request(message)
    stage.tell(GetFailed(stage.gets.pop().token, ObjectMissing("c/data/3/1")))
    assert "write it first" in stage.replies.pop().message
    assert not stage.asked


def test_a_store_that_is_away_is_asked_again_and_then_said_to_be() -> None:
    stage = Stage()
    message, _ = copy_of([A])
    stage.request(message)
    for turn in range(ATTEMPTS_MAX):
        stage.tell(GetFailed(stage.gets.pop().token, Unavailable("the store", "SlowDown")))
        assert bool(stage.replies) == (turn + 1 == ATTEMPTS_MAX)
        stage.wait(1_000)
    assert stage.replies.pop().code == "unavailable"


def test_copies_are_read_back_one_at_a_time_and_no_more_wait_than_may() -> None:
    stage = Stage()
    message, content = copy_of([A])
    for sequence in range(1, ADOPTIONS_MAX + 2):
        stage.request(replace(message, sequence=sequence))
    assert len(stage.gets) == 1
    stage.request(replace(message, sequence=99))
    assert stage.replies.pop().code == "overloaded"
    stage.tell(Gone([2]))
    stage.read(content)
    stage.told(Swapped(0))
    assert [get.object for get in stage.gets] == [object_id(EPOCH, 3)], (
        "nobody waits for the second"
    )


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"sequence": 0}, "bad-request"),
        ({"size": 0}, "bad-request"),
        ({"size": Limits().object_bytes_max + (1 << 13)}, "bad-request"),
        ({"compactor": 0}, "compactor-ended"),
        ({"extents": copy_of([A])[0].extents * 1_025}, "bad-request"),
    ],
)
def test_what_no_compactor_could_have_written_isnt_read(change: Any, code: str) -> None:
    stage = Stage()
    stage.request(replace(copy_of([A])[0], **change))
    assert stage.replies.pop().code == code
    assert not stage.gets


def test_a_swap_under_an_epoch_that_is_over_is_refused_and_the_broker_lives_on() -> None:
    stage = Stage()
    message, content = copy_of([A])
    stage.request(message)
    stage.read(content)
    stage.told(Refused.of(BrokerFenced("compactor/3", 3, 0)))
    assert stage.replies.pop().code == "compactor-ended"
    assert stage.broker.fenced is None
