"""What the leader of a front makes of the log's answer to its opening."""

import pytest
from tests.unit.core.sequencing.group import Group, id_of

from anabranch.core.alarms import Alarms
from anabranch.core.bolt.front.committing import Committing
from anabranch.core.bolt.front.config import COMMIT_BOUNDS
from anabranch.core.bolt.front.counters import FrontCounters
from anabranch.core.bolt.front.questions import LogAnswered, Questions
from anabranch.core.bolt.protocol.fronts import FrontEpoch, FrontOpened
from anabranch.core.machine import Effect
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.view import Ballot
from anabranch.core.types import LogId, Position

Ids = list[tuple[AppendId, Position]]


def opened(records: Position, ids: Ids) -> Committing:
    """Its replica has dropped one record."""
    group = Group("a")
    group.run()
    group.change(Ballot(1, 1), "a")
    group.append(1, id_of(0), "a")
    group.run()
    group["a"].order(group["a"].take())
    group.run()
    effects: list[Effect] = []
    questions = Questions(effects, Alarms(effects))
    found = Committing(
        LogId(1),
        FrontEpoch(1, 2),
        group["a"].replica,
        questions,
        bounds=COMMIT_BOUNDS,
        counters=FrontCounters(),
    )
    questions.answered(LogAnswered(1, FrontOpened(records, ids)))
    return found


@pytest.mark.parametrize(
    ("records", "ids"),
    [
        (0, []),
        (2, []),
        (3, [(id_of(2), 2)]),
    ],
    ids=["an older log", "an older journal", "an older journal, and some ids are known"],
)
def test_a_leader_whose_journal_is_not_of_its_log_orders_nothing(
    records: Position, ids: Ids
) -> None:
    found = opened(records, ids)
    assert found.ended is not None
    assert found.ended.code == "front-differs"
    assert not found.opened


@pytest.mark.parametrize(
    ("records", "ids"),
    [(1, []), (1, [(id_of(0), 0)]), (2, [(id_of(0), 0), (id_of(1), 1)])],
)
def test_a_leader_goes_on_with_what_it_has_not_dropped_yet(records: Position, ids: Ids) -> None:
    found = opened(records, ids)
    assert found.opened
    assert found.ended is None
