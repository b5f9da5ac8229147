"""A sequencer as a machine: what it orders, answers, and does at its end."""

import msgspec
import pytest
from tests.unit.core.erwin.orderer.sequencer_stage import CONTROLLER, Cluster

from anabranch.core.errors import LastShard
from anabranch.core.errors.refused import Refused
from anabranch.core.erwin.protocol.letters import Control, OpenShard
from anabranch.core.erwin.protocol.rows import Mode
from anabranch.core.limits import Limits
from anabranch.core.machine import Gone, Linked, Received
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.protocol.messages import (
    Directory,
    Done,
    Elsewhere,
    FindPosition,
    Found,
    Inspect,
    Locate,
    LogSurvey,
    SequencingStatus,
    SetShardOpen,
    Survey,
    Taken,
    Trim,
)


@pytest.fixture(params=[True, False], ids=["fsync", "memory"])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    fsync: bool = request.param
    cluster = Cluster("a", "b", "c", fsync=fsync)
    cluster.run()
    cluster.change(1, "a", "b")
    return cluster


def ids_at(cluster: Cluster, shard: int = 0) -> list[int]:
    return [row.id.sequence for row in cluster.shards[shard].durable.rows]


def test_appends_are_acknowledged_then_ordered_on_all_shards_then_stable(cluster: Cluster) -> None:
    tokens = [token for sequence in range(6) for token in cluster.append(sequence)]
    assert [cluster.answers[token] for token in tokens] == [Taken()] * 12
    for number in (0, 1):
        assert ids_at(cluster, number) == list(range(6))
        assert cluster.shards[number].stable == 6
    batches = [len(shard.durable.batches) for shard in cluster.shards]
    assert batches == [3, 3], "the leader spreads records evenly"
    assert cluster["a"].replica.stable == 6
    assert not len(cluster["b"].replica.ring)


def test_a_position_is_answered_when_it_is_stable(cluster: Cluster) -> None:
    cluster.append(0)
    cluster.append(1)
    token = cluster.ask("a", FindPosition(AppendId(7, 0, 1)))
    assert cluster.answers[token] == Found(1)


def test_a_shard_that_is_away_stops_the_order_and_no_append(cluster: Cluster) -> None:
    primary = cluster.shards[1].primary
    cluster.away.add(primary)
    tokens = cluster.append(0)
    assert [cluster.answers[token] for token in tokens] == [Taken(), Taken()]
    assert cluster["a"].replica.ordered == 0
    cluster.away.clear()
    cluster.step("a", Linked(primary))
    cluster.run()
    assert cluster["a"].replica.stable == 1


def test_silence_is_asked_after_and_nothing_is_lost(cluster: Cluster) -> None:
    cluster.away.add(cluster.shards[0].primary)
    cluster.append(0)
    cluster.append(1)
    cluster.away.clear()
    cluster.wait(600)
    assert cluster["a"].replica.stable == 2
    assert ids_at(cluster, 0) == ids_at(cluster, 1) == [0, 1]
    assert cluster["a"].counters.gaps == 1


@pytest.mark.parametrize("takes_over", [False, True], ids=["restarts", "another takes over"])
def test_a_primary_that_forgot_what_is_stable_is_told_again(
    cluster: Cluster, *, takes_over: bool
) -> None:
    cluster.append(0)
    shard = cluster.shards[0]
    assert shard.stable == 1
    shard.stable = 0
    if takes_over:
        shard.take_over()
    cluster.away.add(shard.primary)
    cluster.configure()
    cluster.step("a", Linked(shard.primary))
    cluster.run()
    cluster.away.clear()
    cluster.wait(600)
    assert shard.stable == 1


def test_appends_go_on_until_the_ring_is_full() -> None:
    limits = Limits(ring_bytes_max=2_000, batch_bytes_max=1_000)
    cluster = Cluster("a", "b", limits=limits)
    cluster.run()
    cluster.change(1, "a", "b")
    cluster.away.add(cluster.shards[0].primary)
    tokens = [cluster.append(sequence)[0] for sequence in range(8)]
    assert 0 < sum(token in cluster.answers for token in tokens) < 8
    cluster.away.clear()
    cluster.wait(600)
    assert [cluster.answers[token] for token in tokens] == [Taken()] * 8
    assert ids_at(cluster) == list(range(8))


def test_the_next_leader_orders_what_the_last_one_could_not(cluster: Cluster) -> None:
    cluster.append(0)
    cluster.away.add(cluster.shards[1].primary)
    cluster.append(1)
    cluster.append(2)
    assert ids_at(cluster, 0) == [0, 1, 2]
    assert ids_at(cluster, 1) == [0]
    cluster.away.clear()
    cluster.change(2, "b", "c", source="b")
    assert cluster["a"].ordering.leading is None
    assert cluster.answers[cluster.ask("a", Inspect())] == Elsewhere("b")
    cluster.wait(200)
    assert ids_at(cluster, 0) == ids_at(cluster, 1) == [0, 1, 2]
    assert cluster["b"].replica.stable == 3
    assert cluster.shards[0].held.fence.view == 2


def test_a_leader_that_was_restarted_fences_its_own_earlier_pushes() -> None:
    cluster = Cluster("a", "b")
    cluster.run()
    cluster.change(1, "a", "b")
    cluster.away.add(cluster.shards[1].primary)
    cluster.append(0)
    cluster.away.clear()
    cluster.restart("a")
    cluster.configure()
    cluster.wait(200)
    assert [shard.held.fence.start for shard in cluster.shards] == [2, 2]
    assert cluster["a"].replica.stable == 1


def test_a_shard_is_added_while_appends_flow(cluster: Cluster) -> None:
    cluster.append(0)
    added = type(cluster.shards[0])(2)
    cluster.shards.append(added)
    cluster.configure()
    for sequence in range(1, 7):
        cluster.append(sequence)
    assert [row.id.sequence for row in added.durable.rows] == [1, 2, 3, 4, 5, 6]
    assert added.durable.batches, "it takes records like the others"
    assert cluster["a"].replica.stable == 7


def test_a_closed_shard_gets_rows_but_no_records(cluster: Cluster) -> None:
    cluster.shards[0].open = False
    cluster.configure()
    for sequence in range(4):
        cluster.append(sequence)
    assert not cluster.shards[0].durable.batches
    assert ids_at(cluster, 0) == [0, 1, 2, 3]
    assert cluster["a"].replica.stable == 4


def test_trim_is_answered_when_all_shards_have_journaled_it(cluster: Cluster) -> None:
    cluster.append(0)
    cluster.append(1)
    cluster.away.add(cluster.shards[1].primary)
    token = cluster.ask("a", Trim(1))
    assert token not in cluster.answers
    assert cluster["a"].counters.trims == 0
    cluster.away.clear()
    cluster.wait(600)
    assert cluster.answers[token] == Done()
    assert cluster["a"].counters.trims == 1
    assert [shard.durable.trimmed for shard in cluster.shards] == [1, 1]


def test_trim_goes_up_to_what_is_stable_and_to_the_leader(cluster: Cluster) -> None:
    cluster.append(0)
    refused = cluster.answers[cluster.ask("a", Trim(2))]
    assert isinstance(refused, Refused)
    assert refused.code == "trim-too-far"
    assert cluster.answers[cluster.ask("b", Trim(1))] == Elsewhere("a")
    refused = cluster.answers[cluster.ask("a", Trim(-1))]
    assert isinstance(refused, Refused)
    assert refused.code == "bad-request"


def test_a_trim_waits_until_a_leader_that_was_restarted_knows_again_what_is_stable() -> None:
    cluster = Cluster("a", "b", fsync=True)
    cluster.run()
    cluster.change(1, "a", "b")
    cluster.append(0)
    assert cluster["a"].replica.stable == 1
    cluster.machines["b"].up = False
    cluster.restart("a")
    cluster.configure()
    assert cluster["a"].replica.stable == 0
    token = cluster.ask("a", Trim(1))
    cluster.wait(600)
    assert token not in cluster.answers
    assert [shard.durable.trimmed for shard in cluster.shards] == [0, 0]
    cluster.restart("b")
    cluster.wait(600)
    assert cluster.answers[token] == Done()
    assert [shard.durable.trimmed for shard in cluster.shards] == [1, 1]


def test_who_waits_for_a_trim_asks_the_next_leader(cluster: Cluster) -> None:
    cluster.append(0)
    cluster.away.add(cluster.shards[1].primary)
    waiting, gone = cluster.ask("a", Trim(1)), cluster.ask("a", Trim(1))
    cluster.step("a", Gone([gone]))
    cluster.change(2, "b", "c", source="a")
    assert isinstance(cluster.answers[waiting], Elsewhere)
    assert gone not in cluster.answers
    cluster.away.clear()
    cluster.wait(600)
    assert cluster.shards[1].durable.trimmed == 1, "a trim that was begun is brought to its end"


def test_every_sequencer_says_where_things_are(cluster: Cluster) -> None:
    for name in "abc":
        found = cluster.answers[cluster.ask(name, Locate())]
        assert isinstance(found, Directory)
        assert (found.view, found.leader, found.members) == (1, "a", ("a", "b"))
        assert [(shard.name, shard.primary, shard.epoch) for shard in found.shards] == [
            ("s0", "s0-1", 1),
            ("s1", "s1-1", 1),
        ]
        assert (found.version, found.mode) == (cluster.version, "m")


def test_only_the_leader_knows_the_status(cluster: Cluster) -> None:
    assert cluster.answers[cluster.ask("c", Inspect())] == Elsewhere("a")
    cluster.append(0)
    cluster.away.add(cluster.shards[1].primary)
    cluster.append(1)
    token = cluster.ask("a", Inspect())
    cluster.wait(300)
    found = cluster.answers[token]
    assert isinstance(found, SequencingStatus)
    assert (found.stable, found.tail, found.backlog_records) == (1, 2, 1)
    assert [(shard.name, shard.upto) for shard in found.shards] == [("s0", 2), ("s1", 1)]
    assert found.durability == ("fsync" if cluster.fsync else "memory")


def test_the_status_of_a_restarted_leader_never_shows_less_as_stable_than_before() -> None:
    cluster = Cluster("a", "b", "c")
    cluster.run()
    cluster.change(1, "a", "b", "c")
    for sequence in range(5):
        cluster.append(sequence)

    def shown() -> object:
        token = cluster.ask("a", Inspect())
        cluster.wait(300)
        answer = cluster.answers[token]
        return answer.stable if isinstance(answer, SequencingStatus) else answer

    assert shown() == 5
    cluster.machines["b"].up = False
    cluster.restart("a")
    cluster.configure()
    unknown = shown()
    assert isinstance(unknown, Refused)
    assert unknown.code == "unavailable"
    assert "b hasn't told it yet" in unknown.message
    cluster.machines["b"].up = True
    cluster.wait(1_000)
    assert shown() == 5


def test_a_wish_to_close_a_shard_is_repeated_until_it_is_decided(cluster: Cluster) -> None:
    def wishes() -> list[object]:
        found = [letter for letter in cluster.said if isinstance(letter, OpenShard)]
        cluster.said.clear()
        return list(found)

    token = cluster.ask("c", SetShardOpen("s1", False))
    assert wishes() == [OpenShard("s1", False)]
    cluster.wait(300)
    assert wishes() == [OpenShard("s1", False)]
    assert token not in cluster.answers
    cluster.shards[1].open = False
    cluster.configure()
    assert cluster.answers[token] == Done()
    assert cluster.answers[cluster.ask("a", SetShardOpen("s1", False))] == Done()
    cluster.wait(1_000)
    assert not wishes()


def test_the_last_open_shard_is_not_closed(cluster: Cluster) -> None:
    tokens = [cluster.ask("a", SetShardOpen(name, False)) for name in ("s0", "s1")]
    assert not cluster.answers.keys() & set(tokens)
    cluster.shards[1].open = False
    cluster.configure()
    first, second = (cluster.answers[token] for token in tokens)
    assert second == Done()
    assert first == cluster.answers[cluster.ask("c", SetShardOpen("s0", False))]
    assert first == Refused.of(LastShard("s0"))
    cluster.said.clear()
    cluster.wait(1_000)
    assert not any(isinstance(letter, OpenShard) for letter in cluster.said)


def test_a_sequencer_of_another_durability_takes_nothing_and_names_both(cluster: Cluster) -> None:
    started, wanted = ("fsync", "memory") if cluster.fsync else ("memory", "fsync")
    cluster.fsync = not cluster.fsync
    cluster.configure()
    answers = [cluster.answers[token] for token in cluster.append(0)]
    refused = [each for each in answers if isinstance(each, Refused)]
    assert [each.code for each in refused] == ["unavailable"] * 2
    for each in (cluster["a"].obstacle or "", refused[0].message):
        assert f"started with durability {started}" in each
        assert f"durability is {wanted}" in each
    cluster.fsync = not cluster.fsync
    cluster.configure()
    assert [cluster.answers[token] for token in cluster.append(0)] == [Taken()] * 2


def test_nobody_repeats_the_wish_of_a_client_that_has_gone(cluster: Cluster) -> None:
    token = cluster.ask("a", SetShardOpen("s1", False))
    cluster.step("a", Gone([token]))
    cluster.said.clear()
    cluster.wait(1_000)
    assert not any(isinstance(letter, OpenShard) for letter in cluster.said)
    refused = cluster.answers[cluster.ask("a", SetShardOpen("s7", True))]
    assert isinstance(refused, Refused)
    assert refused.code == "unknown-shard"


def test_what_is_for_a_shard_is_refused(cluster: Cluster) -> None:
    refused = cluster.answers[cluster.ask("a", Done())]
    assert isinstance(refused, Refused)
    assert refused.code == "bad-request"


def test_ids_are_ordered_on_the_shards_that_clients_chose() -> None:
    cluster = Cluster("a", "b", mode=Mode.ST)
    cluster.run()
    cluster.change(1, "a", "b")
    for sequence, shard in enumerate(["s1", "s0", "s1"]):
        cluster.append(sequence, shard=shard)
    rows = cluster.shards[0].durable.rows
    assert [row.shard for row in rows] == [1, 0, 1]
    assert rows == cluster.shards[1].durable.rows
    assert not cluster.shards[0].durable.batches
    cluster.shards[1].open = False
    cluster.configure()
    for sequence, shard in (3, "s2"), (4, "s1"):
        refused = cluster.answers[cluster.append(sequence, shard=shard)[0]]
        assert isinstance(refused, Refused)
        assert refused.code == "shard-away"
    repeated = [cluster.answers[token] for token in cluster.append(2, shard="s1")]
    assert repeated == [Taken(), Taken()], "it was appended before the shard was closed"


def test_a_log_of_another_mode_is_an_obstacle() -> None:
    cluster = Cluster("a", mode=Mode.M)
    assert "no controller" in (cluster["a"].obstacle or "")
    cluster.mode = Mode.ST
    cluster.configure()
    assert "mode is st" in (cluster["a"].obstacle or "")


def test_any_sequencer_tells_what_the_controllers_decided_and_do(cluster: Cluster) -> None:
    found = cluster.answers[cluster.ask("b", Survey())]
    assert isinstance(found, LogSurvey)
    assert (found.node, found.view, found.leader, found.age_ms) == ("b", 1, "a", -1)
    assert [node for node, _ in found.members] == ["a", "b"]
    assert [(each.name, each.open) for each in found.shards] == [("s0", True), ("s1", True)]
    said = Control(
        node="k",
        term=2,
        obstacle="",
        changing="sealing",
        silent=("a",),
        leaving=(),
        taking_over=(),
    )
    cluster.step("b", Received(CONTROLLER, said))
    cluster.step("b", Received(CONTROLLER, msgspec.structs.replace(said, node="j", term=1)))
    cluster.step("b", Received("a", msgspec.structs.replace(said, node="a", term=1 << 60)))
    assert cluster["b"].counters.nonsense == 1
    cluster.wait(300)
    found = cluster.answers[cluster.ask("b", Survey())]
    assert isinstance(found, LogSurvey)
    assert (found.controller, found.changing, found.silent) == ("k", "sealing", ("a",))
    assert found.age_ms == 300


def test_a_status_has_what_shards_have_counted_by_then(cluster: Cluster) -> None:
    cluster.append(0)
    cluster.shards[0].reads = 7
    found = cluster.answers[cluster.ask("a", Inspect())]
    assert isinstance(found, SequencingStatus)
    assert [shard.reads for shard in found.shards] == [7, 0]


def test_a_status_doesnt_wait_for_a_shard_that_is_away(cluster: Cluster) -> None:
    cluster.append(0)
    cluster.away.add(cluster.shards[1].primary)
    token = cluster.ask("a", Inspect())
    assert token not in cluster.answers
    cluster.wait(300)
    assert isinstance(cluster.answers[token], SequencingStatus)
