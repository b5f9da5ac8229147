"""Where shards are: the latest that any node knew, whoever was asked."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.client.belfast.directory import Whereabouts
from anabranch.core.belfast.ledger.ledger import Standing
from anabranch.core.belfast.protocol.messages import Directory, Done, Locate, Shard
from anabranch.core.errors import Unavailable
from anabranch.core.errors.refused import Refused


class Lines:
    """Remembers who was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.unheard_of = 0

    def __call__(self, address: str) -> Any:
        lines = self

        class Line:
            def ask(self, listener: Any, message: Any) -> int:
                assert message == Locate()
                lines.asked.append((address, listener))
                return len(lines.asked)

            def unheard(self, request: int) -> None:
                lines.unheard_of += 1

        return Line()


def shard(name: str, primary: str, standing: Standing = Standing.SEATED, by: str = "") -> Shard:
    return Shard(name, standing, 1, primary, (primary, f"{primary}-copy"), by)


def told(index: int, *shards: Shard, leader: str = "", **hosts: str) -> Directory:
    return Directory(index, 0, leader, shards, 0, 0, hosts)


@pytest.fixture
def lines() -> Lines:
    return Lines()


@pytest.fixture
def where(lines: Lines) -> Whereabouts:
    return Whereabouts(["q-0", "q-1"], lines, lambda: None)


@given(st.lists(st.tuples(st.integers(0, 9), st.text("ab", min_size=1, max_size=1)), max_size=12))
def test_what_was_known_later_counts_whoever_told_it_first(
    answers: list[tuple[int, str]],
) -> None:
    heard: list[int] = []
    where = Whereabouts(["q-0"], Lines(), lambda: heard.append(1))
    latest = -1
    for index, primary in answers:
        where.learn(told(index, shard("s", primary)))
        if index >= latest:
            latest, at = index, primary
            assert where.serves("s") == at
    assert len(heard) == len(answers)
    if answers:
        best = max(index for index, _ in answers)
        known = next(primary for index, primary in reversed(answers) if index == best)
        assert where.serves("s") == known


def test_shards_are_still_to_join_until_as_many_are_known_as_are_expected(
    where: Whereabouts,
) -> None:
    assert where.joining
    where.learn(told(1))
    assert where.joining, "a log has one shard at least"
    where.learn(told(2, shard("a", "n")))
    assert not where.joining
    where.expected = 2
    assert where.joining
    assert "1 of 2 shards" in where.missing("b").message
    where.learn(told(3, shard("a", "n"), shard("b", "n", Standing.LEFT)))
    assert not where.joining, "one that has left was there"


def test_a_leader_that_somebody_doesnt_know_stays_known(where: Whereabouts) -> None:
    where.learn(told(1, leader="q-1"))
    where.learn(told(2))
    assert where.leader == "q-1"
    where.learn(told(3, leader="q-0"))
    assert where.leader == "q-0"


def test_nodes_are_asked_by_turns_those_that_were_named_first(
    lines: Lines, where: Whereabouts
) -> None:
    where.learn(told(1, shard("s", "n"), leader="q-1"))
    assert where.nodes == ["q-0", "q-1", "n", "n-copy"]
    assert [where.any() for _ in range(5)] == ["q-0", "q-1", "n", "n-copy", "q-0"]


def test_one_is_asked_at_a_time_and_another_when_that_one_says_nothing(
    lines: Lines, where: Whereabouts
) -> None:
    where.ask()
    where.ask()
    assert [node for node, _ in lines.asked] == ["q-0"]
    where.ask_another()
    assert [node for node, _ in lines.asked] == ["q-0", "q-1"]
    _, first = lines.asked[0]
    first.heard(told(5, shard("s", "n")))
    assert where.serves("s") == "n", "an answer counts, however late"
    where.ask()
    assert len(lines.asked) == 2, "the second is still waited for"
    lines.asked[1][1].lost(sent=True)
    where.ask()
    assert len(lines.asked) == 3


@pytest.mark.parametrize(
    "answer", [Done(), Refused.of(Unavailable("it", "no")), Unavailable("it", "no")]
)
def test_what_is_no_directory_tells_nothing_and_lets_others_be_asked(
    lines: Lines, where: Whereabouts, answer: Any
) -> None:
    where.ask()
    lines.asked[0][1].heard(answer)
    assert where.directory is None
    assert lines.unheard_of == 1
    where.ask()
    assert len(lines.asked) == 2


def test_whoever_stands_in_serves_a_failed_shards_subscribers(where: Whereabouts) -> None:
    where.learn(
        told(
            1,
            shard("a", "n-a"),
            shard("b", "n-b", Standing.FAILED, by="a"),
            shard("c", "n-c", Standing.FAILED, by="n-x"),
            shard("d", "n-d", Standing.WAITING),
            shard("e", "", Standing.SEATED),
            shard("f", "n-f", Standing.LEAVING),
        )
    )
    assert [where.serves(each) for each in "abcdefz"] == [
        "n-a", "n-a", "n-x", "n-d", "", "n-f", ""
    ]  # fmt: skip
    assert where.taking() == ["a"]
    assert where.serving() == ["a", "d", "e", "f"]
    assert [each for each in "abcdefz" if where.failed(each)] == ["b", "c"]


def test_where_nodes_were_met_is_kept_from_every_answer(where: Whereabouts) -> None:
    where.learn(told(5, n="10.0.0.1"))
    where.learn(told(1, n="10.0.0.2", m="10.0.0.3"))
    assert where.hosts == {"n": "10.0.0.2", "m": "10.0.0.3"}
