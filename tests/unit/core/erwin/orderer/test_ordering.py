"""The leader's background ordering, against shards and members that are as simple as can be."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.core.erwin.orderer.naive_shard import NaiveShard
from tests.unit.core.erwin.orderer.sequencer_stage import Cluster
from tests.unit.core.erwin.orderer.stage import Stage

from anabranch.core.erwin.protocol.letters import Push
from anabranch.core.erwin.protocol.rows import Mode
from anabranch.core.machine import TimerFired
from anabranch.core.sequencing.protocol.messages import Taken

ACTIONS = (
    ["append"] * 6
    + ["deliver", "sync", "answer"] * 5
    + ["lose", "late", "drop", "wait", "link", "take over", "configure", "trim"]
    + ["restart", "view"]
)

steps = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 50)), min_size=20, max_size=80)


def act(stage: Stage, what: str, number: int) -> None:
    shard = stage.shards[number % len(stage.shards)]
    match what:
        case "append":
            name = shard.name if stage.mode is Mode.ST else ""
            stage.append(*[1 + number] * (1 + number % 3), shard=name)
        case "deliver" if stage.fresh:
            stage.push(*stage.fresh.pop(number % min(3, len(stage.fresh))))
        case "lose" if stage.fresh:
            stage.fresh.pop(number % len(stage.fresh))
        case "late" if stage.sent:
            stage.push(*stage.sent[number % len(stage.sent)])
        case "sync":
            stage.sync(shard)
        case "answer" if stage.answers:
            stage.answer(number % len(stage.answers))
        case "drop":
            stage.drop()
        case "wait":
            stage.wait(50 * number)
        case "link":
            stage.link(shard.primary)
        case "take over":
            shard.take_over()
        case "configure":
            stage.configure()
        case "restart":
            stage.replica.restart()
            stage.configure()
        case "view":
            view = stage.replica.view
            assert view is not None
            kept = number % (len(stage.replica.unstable) + 1)
            stage.lead(view.number + 1, kept=kept, moved=number)
        case _:
            pass


@settings(max_examples=400)
@given(steps, st.sampled_from(list(Mode)), st.integers(1, 3))
def test_whatever_the_network_does_everything_is_ordered_once(
    actions: list[tuple[str, int]], mode: Mode, shards: int
) -> None:
    stage = Stage([NaiveShard(number) for number in range(shards)], mode)
    stage.lead()
    for what, number in actions:
        act(stage, what, number)
    stage.configure()
    stage.calm()
    assert not len(stage.replica.ring)
    assert stage.ordering.idle
    assert stage.replica.stable == stage.replica.ordered
    first = stage.shards[0].durable.rows
    for shard in stage.shards:
        assert shard.stable == stage.replica.stable
        assert shard.durable.rows == first
    assert {row.first: row.id for row in first} == stage.final
    if mode is Mode.M:
        for shard in stage.shards:
            own = [row.id.sequence for row in first if row.shard == shard.number]
            assert [int(batch.split(b"x")[0]) for batch in shard.durable.batches] == own


def test_a_leader_answers_its_clients_in_a_step_before_it_orders() -> None:
    cluster = Cluster("a", "b", fsync=False)
    cluster.run()
    cluster.change(1, "a", "b")
    tokens = cluster.append(0, run=False)
    assert [cluster.answers[token] for token in tokens] == [Taken()] * 2
    assert cluster.letters == []
    cluster.step("a", TimerFired("alarms"))
    assert [type(send.message) for _, send in cluster.letters] == [Push, Push]
