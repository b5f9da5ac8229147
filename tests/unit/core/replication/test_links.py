"""How long a replica waits for answers, as its owner sets it."""

import pytest

from anabranch.core.alarms import Alarms
from anabranch.core.machine import Effect, Send
from anabranch.core.replication.config import ReplicaConfig
from anabranch.core.replication.letters import Joining
from anabranch.core.replication.links import Links
from anabranch.core.types import MS

LETTER = Joining(group="log", epoch=1, last=0, terms=())


def links() -> tuple[Links, list[Effect]]:
    effects: list[Effect] = []
    alarms = Alarms(effects)
    alarms.now = 1_000 * MS
    return Links(ReplicaConfig(group="log", node="a", nodes=("a", "b")), effects, alarms), effects


@pytest.mark.parametrize(
    ("patience", "pause"), [(200 * MS, 50 * MS), (1_000 * MS, 250 * MS), (3, 1), (0, 1)]
)
def test_a_letter_is_repeated_several_times_before_silence_counts(
    patience: int, pause: int
) -> None:
    tried, _ = links()
    tried.patience = patience
    assert tried.next_retry - tried.alarms.now == pause


def test_a_replica_writes_to_others_and_never_to_itself() -> None:
    tried, effects = links()
    tried.send("b", LETTER)
    assert effects == [Send("b", LETTER)]
    with pytest.raises(AssertionError):
        tried.send("a", LETTER)


@pytest.mark.parametrize(
    ("node", "nodes"), [("z", ("a", "b")), ("a", ("a", "a"))], ids=["absent", "twice"]
)
def test_a_replica_is_one_of_its_group_and_only_once(node: str, nodes: tuple[str, ...]) -> None:
    with pytest.raises(AssertionError):
        ReplicaConfig(group="log", node=node, nodes=nodes)
