"""A shard's primary: appends, quotas, no-ops, deliveries, confirmations."""

import pytest
from msgspec.structs import replace
from tests.unit.core.belfast.shard.shard_stage import LEADER, RULES, Stage, batch

from anabranch.core.belfast.ledger.decisions import CutTo, Release, TrimTo
from anabranch.core.belfast.protocol.letters import (
    Alive,
    Decided,
    FixLag,
    Leading,
    Learn,
    Places,
    Seal,
    Sealed,
)
from anabranch.core.belfast.protocol.messages import (
    Confirmed,
    Delivered,
    Directory,
    Elsewhere,
    Eras,
    Locate,
    Subscribe,
    Trim,
    Where,
)
from anabranch.core.belfast.shard.config import ShardConfig
from anabranch.core.belfast.shard.shard import Shard
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.machine import Persisted, Received, Request, Send
from anabranch.core.wire.session import Credit


def values(count: int, prefix: str = "v") -> list[str]:
    return [f"{prefix}{nth}" for nth in range(count)]


def code(stage: Stage, token: int) -> str:
    refused = stage.answer(token)
    assert isinstance(refused, Refused), refused
    return refused.code


def test_the_papers_positions() -> None:
    """Quotas 2, 3, 2: the first cut is S1 1-2, S2 3-5, S3 6-7; then S1 8-9 (3.2); here from 0."""
    stage = Stage()
    stage.admit(2, 3, 2)
    tokens = [
        stage.append("a1", *values(4)),
        stage.append("b1", *values(6)),
        stage.append("c1", *values(4)),
    ]
    assert [stage.report(node).rounds for node in ("a1", "b1", "c1")] == [2, 2, 2]
    stage.cut(0, 2)
    found = [stage.positions(token) for token in tokens]
    assert found == [[0, 1, 7, 8], [2, 3, 4, 9, 10, 11], [5, 6, 12, 13]]


def test_an_append_is_acknowledged_when_all_of_it_is_cut_and_not_before() -> None:
    """Order doesn't precede durability, and durability isn't order (3.2; F7)."""
    stage = Stage()
    stage.admit(2, 3, 2)
    token = stage.append("a1", *values(3))
    assert stage.waits(token)
    stage.cut(0, 1)
    assert stage.waits(token)
    stage.append("a1", "more")
    stage.cut(0, 2)
    assert stage.positions(token) == [0, 1, 7]


def test_of_two_appends_one_after_the_other_the_first_has_the_lower_position() -> None:
    """B at S2 mustn't be told its position while A at S1 may still be put before it (3.2; G1)."""
    stage = Stage({"a": ("a1",), "b": ("b1",)})
    stage.admit(1, 1)
    second = stage.append("b1", "B")
    assert stage.waits(second)
    stage.sleep(2)
    stage.cut(0, 1)
    assert stage.positions(second) == [1]
    later = stage.append("a1", "A")
    assert stage.waits(later)
    stage.sleep(10)
    stage.cut(0, min(stage.report("a1").rounds, stage.report("b1").rounds))
    assert stage.positions(later) > stage.positions(second)


def test_a_record_is_foretold_once_it_is_durable_in_a_published_window() -> None:
    stage = Stage()
    stage.admit(2, 3, 2)
    reader = stage.subscribe("b1", "b")
    stage.append("b1", *values(4))
    assert stage.delivered(reader) == [
        (2, "v0", True),
        (3, "v1", True),
        (4, "v2", True),
        (9, "v3", True),
    ]
    assert stage.upto(reader) == 10
    stage.cut(0, 1)
    assert stage.of(reader, Confirmed)[-1].upto == 7


def test_eras_come_before_what_lies_in_them() -> None:
    stage = Stage()
    stage.admit(2, 3, 2)
    reader = stage.subscribe("a1", "a")
    stage.append("a1", *values(2))
    assert isinstance(stage.answers[reader][0], Eras)
    assert stage.answers[reader][0] == Eras(((0, ("a", "b", "c")),), 70)
    stage.open(2, 3)
    assert stage.of(reader, Eras)[-1] == Eras(((70, ("a", "b")),), 120)


def test_a_filter_lets_others_only_move_the_end() -> None:
    """D10."""
    stage = Stage({"a": ("a1",)})
    stage.admit(2)
    reader = stage.subscribe("a1", "a", where=Where(key_prefix=b"x"))
    stage.append("a1", "x0", "y1", "x2", "x3")
    assert [place for place, _, _ in stage.delivered(reader)] == [0, 2, 3]
    stage.append("a1", "y4", "y5")
    assert [place for place, _, _ in stage.delivered(reader)] == [0, 2, 3]
    assert stage.upto(reader) == 6


def test_a_subscriber_gets_no_more_than_it_has_room_for() -> None:
    """D5."""
    stage = Stage({"a": ("a1",)})
    stage.admit(1, rounds=100)
    size = len(batch("v0"))
    reader = stage.subscribe("a1", "a", window_bytes=2 * size)
    for nth in range(5):
        stage.append("a1", f"v{nth}")
    assert [value for _, value, _ in stage.delivered(reader)] == ["v0", "v1"]
    assert stage.upto(reader) == 2
    stage.ask("a1", Credit(reader, size))
    assert [value for _, value, _ in stage.delivered(reader)] == ["v0", "v1", "v2"]
    stage.ask("a1", Credit(reader, 10 * size))
    assert [value for _, value, _ in stage.delivered(reader)] == values(5)


def test_old_records_are_read_back_from_the_journal() -> None:
    stage = Stage({"a": ("a1",)}, cache_bytes=200)
    stage.admit(2, rounds=100)
    for nth in range(20):
        stage.append("a1", f"v{nth}", f"w{nth}")
    stage.cut(0, 15)
    reader = stage.subscribe("a1", "a", start=3)
    found = stage.delivered(reader)
    assert [place for place, _, _ in found] == list(range(3, 40))
    assert found[0][1] == "w1"
    assert [each for each in found if each[2]] == found[27:]


def test_what_is_read_back_ends_where_its_certainty_does() -> None:
    """Cuts go on meanwhile: what they have come to is told apart from what is foretold."""
    stage = Stage({"a": ("a1",)}, cache_bytes=1)
    stage.admit(2, rounds=100)
    for nth in range(10):
        stage.append("a1", f"v{nth}", f"w{nth}")
    stage.nodes["a1"].give(Request(999, Subscribe("a", 0)))
    read = stage.later.popleft()
    stage.cut(0, 3)
    stage.later.append(read)
    stage.settle()
    found = stage.delivered(999)
    assert [place for place, _, _ in found] == list(range(20))
    assert [value for _, value, _ in found] == [
        f"{kind}{nth}" for nth in range(10) for kind in "vw"
    ]
    assert [foretold for _, _, foretold in found] == [False] * 6 + [True] * 14


def test_subscribers_in_step_share_what_they_get() -> None:
    stage = Stage({"a": ("a1",)})
    stage.admit(2)
    readers = [stage.subscribe("a1", "a") for _ in range(3)]
    stage.append("a1", *values(2))
    told = [stage.of(reader, Delivered)[-1] for reader in readers]
    assert told[0] is told[1] is told[2]


def test_a_retry_of_what_waits_and_of_what_is_confirmed_gets_the_same_answer() -> None:
    """D4."""
    stage = Stage({"a": ("a1",)})
    stage.admit(2)
    first = stage.append("a1", "v0", "v1", producer=9, sequence=0)
    again = stage.append("a1", "v0", "v1", producer=9, sequence=0)
    assert stage.waits(first)
    assert stage.waits(again)
    stage.cut(0, 1)
    late = stage.append("a1", "v0", "v1", producer=9, sequence=0)
    assert stage.positions(first) == stage.positions(again) == stage.positions(late) == [0, 1]
    assert code(stage, stage.append("a1", "v9", producer=9, sequence=9)) == "sequence-gap"
    assert stage.nodes["a1"].machine.counters.records == 2


def test_a_retry_after_a_restart_finds_what_it_repeats() -> None:
    stage = Stage({"a": ("a1",)})
    stage.admit(2)
    stage.append("a1", "v0", "v1", producer=9, sequence=0)
    stage.crash("a1")
    stage.cut(0, 1)
    stage.restart("a1")
    stage.tell("a1", 1)
    again = stage.append("a1", "v0", "v1", producer=9, sequence=0)
    assert stage.positions(again) == [0, 1]
    following = stage.append("a1", "v2", "v3", producer=9, sequence=2)
    stage.cut(0, 2)
    assert stage.positions(following) == [2, 3]


def test_too_much_that_waits_is_refused_at_once() -> None:
    size = len(batch("v"))
    stage = Stage({"a": ("a1",)}, limits=Limits(queue_bytes_max=2 * size))
    stage.admit()
    tokens = [stage.append("a1", "v") for _ in range(3)]
    assert [stage.waits(token) for token in tokens] == [True, True, False]
    assert code(stage, tokens[2]) == "overloaded"
    stage.open(2)
    stage.cut(0, 1)
    assert stage.positions(tokens[0]) == [0]
    assert stage.waits(stage.append("a1", "v"))


def test_who_has_gone_is_told_nothing() -> None:
    stage = Stage({"a": ("a1",)})
    stage.admit(1)
    token = stage.append("a1", "v")
    stage.gone("a1", token)
    stage.cut(0, 1)
    assert stage.waits(token)
    reader = stage.subscribe("a1", "a")
    stage.gone("a1", reader)
    told = len(stage.answers[reader])
    stage.append("a1", "w")
    assert len(stage.answers[reader]) == told


def test_a_shard_without_a_seat_says_that_it_has_nothing() -> None:
    stage = Stage({"a": ("a1",), "b": ("b1",)})
    stage.admit(2, 2)
    stage.open(2, 0)
    reader = stage.subscribe("b1", "b")
    stage.post.append((LEADER, "b1", FixLag(shard=1, signal=1, window=1, rounds=10)))
    stage.settle()
    assert stage.upto(reader) == 60
    waits = stage.append("b1", "later")
    stage.cut(0, 10)
    stage.cut(1, 10)
    assert stage.waits(waits)
    stage.open(2, 1)
    assert stage.delivered(reader) == [(62, "later", True)]
    stage.cut(2, 1)
    assert stage.positions(waits) == [62]


def test_below_the_logs_beginning_there_is_nothing_to_read() -> None:
    stage = Stage({"a": ("a1",)})
    stage.admit(2)
    stage.append("a1", *values(4))
    stage.append("a1", *values(4, "w"))
    stage.cut(0, 4)
    reader = stage.subscribe("a1", "a", window_bytes=1)
    stage.decide(TrimTo(4))
    assert stage.nodes["a1"].machine.replica.log.first == 4
    assert code(stage, stage.subscribe("a1", "a", start=3)) == "position-trimmed"
    later = stage.subscribe("a1", "a", start=4)
    assert [place for place, _, _ in stage.delivered(later)] == [4, 5, 6, 7]
    assert stage.upto(reader) == 4
    stage.crash("a1")
    stage.restart("a1")
    stage.tell("a1", 1)
    again = stage.subscribe("a1", "a", start=4)
    assert [value for _, value, _ in stage.delivered(again)] == values(4, "w")
    assert stage.report("a1").records == 8


def test_who_waits_is_told_before_its_places_are_forgotten() -> None:
    stage = Stage({"a": ("a1",)})
    stage.admit(2)
    token = stage.append("a1", "v0", "v1")
    longer = stage.append("a1", *values(4, "w"))
    stage.decide(CutTo(window=0, cut=2), TrimTo(4))
    assert stage.positions(token) == [0, 1]
    stage.cut(0, 3)
    assert stage.positions(longer) == [2, 3, 4, 5]
    assert code(stage, stage.subscribe("a1", "a")) == "position-trimmed"


def test_who_leaves_serves_what_it_has_until_that_is_trimmed() -> None:
    stage = Stage({"a": ("a1",), "b": ("b1",)})
    stage.admit(1, 1, rounds=2)
    kept = stage.append("b1", "kept")
    void = [stage.append("b1", "last"), stage.append("b1", "too late")]
    stage.decide(Release(1))
    assert code(stage, stage.append("b1", "refused")) == "shard-left"
    stage.open(1, rounds=2)
    stage.cut(0, 2)
    machine = stage.nodes["b1"].machine
    assert stage.positions(kept) == [1]
    assert stage.positions(void[0]) == [3]
    assert code(stage, void[1]) == "record-voided"
    reader = stage.subscribe("b1", "b")
    assert stage.delivered(reader) == [(1, "kept", False), (3, "last", False)]
    assert not machine.may_go
    stage.cut(1, 1)
    stage.decide(TrimTo(4))
    assert machine.may_go


def test_anybody_is_told_where_everybody_is() -> None:
    stage = Stage({"a": ("a1", "a2"), "b": ("b1",)})
    stage.admit(1, 1)
    directory = stage.answer(stage.ask("a2", Locate()))
    assert isinstance(directory, Directory)
    assert [(each.name, each.primary) for each in directory.shards] == [("a", "a1"), ("b", "b1")]
    assert stage.answer(stage.subscribe("a2", "a")) == Elsewhere("a1")
    assert stage.answer(stage.append("a2", "v")) == Elsewhere("a1")
    assert stage.answer(stage.subscribe("a2", "b")) == Elsewhere("b1")
    assert stage.answer(stage.ask("a1", Trim(1))) == Elsewhere(LEADER)
    assert code(stage, stage.subscribe("a1", "z")) == "unknown-shard"


def test_who_isnt_admitted_takes_nothing_and_says_that_it_is_alive() -> None:
    stage = Stage({"a": ("a1",)})
    assert code(stage, stage.append("a1", "v")) == "shard-away"
    before = [letter for _, letter in stage.letters if isinstance(letter, Alive)]
    stage.sleep(11)
    alive = [letter for _, letter in stage.letters if isinstance(letter, Alive)]
    assert len(alive) >= len(before) + 2
    disk = stage.nodes["a1"].machine.replica.log.disk
    assert disk
    assert alive[-1] == Alive("a", ("a1",), 0, 0, 0, disk=disk)


def test_what_was_missed_is_asked_for() -> None:
    stage = Stage({"a": ("a1",)})
    stage.admit(2)
    stage.nodes["a1"].deaf = True
    stage.open(1)
    stage.letters.clear()
    stage.nodes["a1"].deaf = False
    stage.decide(Release(0))
    stage.tell("a1", 4)
    asked = [letter for _, letter in stage.letters if isinstance(letter, Alive)]
    assert asked[0].applied == 2
    stage.tell("a1", 1)
    assert stage.nodes["a1"].machine.following.applied == 4


@pytest.mark.parametrize("waiting", [False, True])
def test_a_process_that_ends_waits_a_little_for_what_it_took(waiting: bool) -> None:
    stage = Stage({"a": ("a1",)}, limits=Limits(drain_ms=50))
    stage.admit(1)
    token = stage.append("a1", "v") if waiting else None
    stage.drain("a1")
    assert code(stage, stage.append("a1", "late")) == "shard-away"
    assert stage.nodes["a1"].rested is not waiting
    if token is not None:
        stage.cut(0, 1)
        assert stage.positions(token) == [0]
        assert stage.nodes["a1"].rested


def test_a_process_that_ends_doesnt_wait_for_ever() -> None:
    stage = Stage({"a": ("a1",)}, limits=Limits(drain_ms=50), rules=replace(RULES))
    stage.admit(1)
    stage.append("a1", "v")
    stage.drain("a1")
    stage.sleep(6)
    assert stage.nodes["a1"].rested


@pytest.mark.parametrize("fsync", [True, False])
def test_a_replica_says_whether_what_it_stores_is_on_a_disk(fsync: bool) -> None:
    replica = ShardConfig(shard="a", node="a1", replicas=("a1",), sequencers=(LEADER,), fsync=fsync)
    shard = Shard(replica, Limits())
    shard.recover(None)
    said = (*shard.start(1), *shard.step(1, Persisted(1)))
    letters = [each.message for each in said if isinstance(each, Send)]
    assert [each.fsync for each in letters if isinstance(each, Alive)] == [fsync]


def test_only_sequencers_lead_a_shard_and_a_letter_for_others_ends_nothing() -> None:
    stage = Stage()
    stage.admit(2, 3, 2)
    machine = stage.nodes["a1"].machine
    known = machine.following.term
    lies = [
        Leading(known + 1, RULES),
        Decided(known, machine.following.applied + 1, [b""]),
        Seal(shard=0, epoch=9),
        Learn(shard=0, epoch=9, primary="x"),
        Places(shard="a", view=9, floor=1 << 60, upto=1 << 60, rows=[]),
    ]
    for letter in lies:
        stage.nodes["a1"].give(Received("stranger", letter))
    stage.nodes["a1"].give(Received("stranger", Sealed(shard=0, epoch=1, last_epoch=1, last=1)))
    assert machine.counters.nonsense == len(lies)
    assert (machine.following.term, machine.following.leader) == (known, LEADER)
    token = stage.append("a1", "v")
    stage.cut(0, 1)
    assert stage.positions(token) == [0]
