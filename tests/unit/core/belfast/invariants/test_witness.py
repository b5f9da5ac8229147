"""Each rule of the witness, broken by one word."""

import pytest

from anabranch.core.belfast.invariants.witness import Witness
from anabranch.core.belfast.ledger.decisions import (
    Admit,
    AnyDecision,
    ChangeView,
    CutFreely,
    CutTo,
    OpenWindow,
    encode_entry,
)
from anabranch.core.belfast.ledger.windows import Mode, Run
from anabranch.core.belfast.protocol.letters import Decided, Report
from anabranch.core.belfast.protocol.messages import Appended, Confirmed, Delivered, Failed
from anabranch.core.machine import Effect, Replies, Reply, Send
from anabranch.core.replication.letters import Stored

ROUNDS, QUOTA = 4, 2


def entries() -> list[list[AnyDecision]]:
    """Two shards with a seat each in a window of eight records of either."""
    return [
        [Admit("a", ("a-0", "a-1"), 0), Admit("b", ("b-0",), 0)],
        [OpenWindow(0, Mode.STEADY, ROUNDS, 1, ((0, QUOTA), (1, QUOTA)))],
    ]


def witness() -> Witness:
    made = Witness()
    for replica in ("a-0", "a-1", "b-0"):
        made.add_replica(replica, replica[0])
    for index, decisions in enumerate(entries(), 1):
        made.on_commit("seq-0", index, encode_entry(decisions))
    assert made.violations == []
    return made


def report(shard: int, rounds: int, durable: int) -> Send:
    return Send("seq-0", Report(shard, 1, 0, 0, rounds, durable, durable, 0, 0, 2))


def decide(made: Witness, *decisions: AnyDecision) -> None:
    made.on_commit("seq-0", made.index + 1, encode_entry(decisions))


def confirmed() -> Witness:
    """The first round of either shard is durable, reported and cut."""
    made = witness()
    made.observe("a-1", Send("a-0", Stored("a", 1, 1, QUOTA, 1)))
    made.observe("a-0", report(0, 1, QUOTA))
    made.observe("b-0", report(1, 1, QUOTA))
    decide(made, CutTo(window=0, cut=1))
    assert made.violations == []
    assert made.ledger.confirmed == 2 * QUOTA
    return made


def test_a_deployment_that_keeps_to_the_rules_breaks_none() -> None:
    made = confirmed()
    end = made.ledger.confirmed
    horizon = made.ledger.horizon
    made.observe("a-0", Reply(1, Delivered(0, horizon, True, (Run(0, 2),), (), ())))
    made.observe("a-0", Replies([1, 2], [Confirmed(0, end), Appended((Run(0, 2),))]))
    made.on_delivery("client", end - 1, speculative=False)
    made.on_delivery("client", end, speculative=True)
    assert made.violations == []


def test_the_group_has_one_log() -> None:
    made = witness()
    made.on_commit("seq-1", 1, encode_entry([CutTo(window=0, cut=1)]))
    assert made.violations[0].startswith("C1 one log: seq-1")
    made = witness()
    made.on_commit("seq-1", 9, encode_entry([CutTo(window=0, cut=1)]))
    assert made.violations[0].startswith("C1 one log: seq-1 commits entry 9")
    made = witness()
    made.observe("seq-0", Send("a-0", Decided(1, 1, [encode_entry([CutTo(window=0, cut=1)])])))
    assert made.violations[0].startswith("C1 one log: seq-0")


@pytest.mark.parametrize(
    ("rule", "node", "effect"),
    [
        ("F3", "a-0", report(0, ROUNDS + 1, 100)),
        ("F3", "b-0", report(1, 2, QUOTA)),
        ("F3", "a-0", report(0, 2, 2 * QUOTA)),
        ("F6", "a-0", Reply(1, Confirmed(0, 5))),
        ("F6", "a-0", Reply(1, Delivered(0, 6, False, (Run(4, 6),), (), ()))),
        ("F7", "a-0", Reply(1, Appended((Run(4, 6),)))),
        ("F8", "a-0", Reply(1, Delivered(0, 1_000, True, (), (), ()))),
        ("F1", "b-0", Reply(1, Appended((Run(0, 2),)))),
        ("F11", "a-0", Reply(1, Confirmed(1, 0))),
    ],
    ids=lambda each: each if isinstance(each, str) else None,
)
def test_a_word_that_breaks_a_rule_is_noted_under_it(rule: str, node: str, effect: Effect) -> None:
    made = confirmed()
    made.observe(node, effect)
    assert any(each.startswith(f"{rule}: {node}") for each in made.violations), made.violations


def test_a_cut_needs_the_report_of_every_seat() -> None:
    made = witness()
    made.observe("a-1", Send("a-0", Stored("a", 1, 1, QUOTA, 1)))
    made.observe("a-0", report(0, 1, QUOTA))
    decide(made, CutTo(window=0, cut=1))
    assert made.violations == [
        "F4: cut 1 of window 0 needs 1 rounds of shard 1, which reported (-1, 0)"
    ]


def test_a_free_cut_needs_reports_of_all_that_it_counts() -> None:
    made = Witness()
    decide(made, *entries()[0])
    decide(made, OpenWindow(0, Mode.FREE_WILL, 0, 1, ((0, QUOTA), (1, QUOTA))))
    made.observe("b-0", Send("seq-0", Report(1, 1, 0, 0, 0, 2, 2, 0, 0, 2)))
    decide(made, CutFreely(0, (0, 2)))
    assert made.violations == []
    decide(made, CutFreely(0, (0, 3)))
    assert made.violations == ["F4: a cut of window 0 has 3 records of 1, which reported 2"]


def test_nothing_beyond_the_cuts_is_handed_out_as_final() -> None:
    made = confirmed()
    made.on_delivery("client", made.ledger.confirmed, speculative=False)
    assert made.violations[0].startswith("F6: client")


def test_a_view_begins_with_its_failure_where_the_cuts_had_come_to() -> None:
    made = confirmed()
    end = made.ledger.confirmed
    made.observe("a-0", Reply(1, Confirmed(0, end)))
    made.observe("a-0", Reply(2, Confirmed(0, end)))
    decide(made, ChangeView(view=1, failed=(1,), stand_in=0))
    made.observe(
        "a-0", Reply(1, Failed(view=1, since=end, shards=("b",), upto=made.ledger.horizon))
    )
    made.observe("a-0", Reply(1, Confirmed(1, end)))
    assert made.violations == []
    made.observe("a-0", Reply(2, Confirmed(1, end)))
    assert made.violations[-1].startswith("F9: a-0 goes on in view 1")
    made.observe(
        "a-0", Reply(3, Failed(view=1, since=end - 1, shards=("b",), upto=made.ledger.horizon))
    )
    assert made.violations[-1].startswith("F9: a-0 fails 3 in view 1")
