"""One promise over n lines, in every engine's dialect."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.unit.client.session.stage import Engine, Stage

from anabranch.client.session.delivery import Delivery
from anabranch.core.errors import BadFrame, Overloaded
from anabranch.core.errors.refused import Refused


@dataclass
class Promiser:
    answers: list[Any] = field(default_factory=list[Any])
    losses: list[bool] = field(default_factory=list[bool])

    def answered(self, message: Any) -> None:
        self.answers.append(message)

    def lost(self, *, sent: bool) -> None:
        self.losses.append(sent)


@pytest.fixture
def stages(engine: Engine) -> list[Stage]:
    stages = [Stage(engine) for _ in range(3)]
    for stage in stages:
        stage.line.dial()
        stage.connect()
        stage.effects()
    return stages


def begin(stages: list[Stage]) -> tuple[Promiser, Delivery[Any, Any]]:
    promiser = Promiser()
    delivery: Delivery[Any, Any] = Delivery(promiser)
    delivery.send(stages[0].engine.question, *(stage.line for stage in stages))
    return promiser, delivery


def request(stage: Stage) -> int:
    """The number under which the delivery was transmitted."""
    (transmitted,) = stage.effects()
    return transmitted.request


def test_one_line_s_acknowledgement_keeps_a_promise_over_one_line(stages: list[Stage]) -> None:
    stage = stages[0]
    promiser, delivery = begin([stage])
    stage.hear(request(stage), stage.engine.answer)
    assert promiser.answers == [stage.engine.answer]
    assert not delivery.under_way


def test_a_promise_is_kept_when_every_line_has_acknowledged_it(stages: list[Stage]) -> None:
    promiser, delivery = begin(stages)
    for stage in stages:
        assert promiser.answers == []
        assert delivery.under_way
        stage.hear(request(stage), stage.engine.answer)
    assert promiser.answers == [stages[0].engine.answer]
    assert not delivery.under_way


@pytest.mark.parametrize("refusal", [Refused.of(Overloaded("it", 1, "it_max")), BadFrame("torn")])
def test_the_first_refusal_ends_a_delivery(stages: list[Stage], refusal: Any) -> None:
    promiser, delivery = begin(stages)
    numbers = [request(stage) for stage in stages]
    stages[1].hear(numbers[1], refusal)
    assert promiser.answers == [refusal]
    assert not delivery.under_way
    for stage, number in zip(stages, numbers, strict=True):
        stage.hear(number, stage.engine.answer)
    assert promiser.answers == [refusal]


def test_a_line_that_breaks_ends_a_delivery_which_may_have_been_done(stages: list[Stage]) -> None:
    promiser, delivery = begin(stages)
    stages[2].line.broken("it broke")
    assert promiser.losses == [True]
    assert not delivery.under_way


def test_what_was_never_sent_was_certainly_not_done(engine: Engine) -> None:
    stage = Stage(engine)
    promiser, _ = begin([stage])
    stage.line.broken("nobody listens")
    assert promiser.losses == [False]


def test_a_promise_is_sent_again_over_other_lines(stages: list[Stage]) -> None:
    promiser, delivery = begin(stages[:1])
    stages[0].line.broken("it broke")
    delivery.send(stages[0].engine.question, stages[1].line)
    stages[1].hear(request(stages[1]), stages[1].engine.answer)
    assert promiser.answers == [stages[1].engine.answer]


def test_a_delivery_that_stopped_leaves_others_on_its_line_alone(stages: list[Stage]) -> None:
    """A line counts its requests anew on each connection."""
    stage = stages[0]
    _, delivery = begin([stage])
    stage.line.broken("it broke")
    caller, number = stage.ask()
    delivery.stop()
    stage.connect()
    stage.hear(number, stage.engine.answer)
    assert caller.got == [stage.engine.answer]


def joint(message: Any) -> bool:
    return isinstance(message, Refused) and message.code == Overloaded.code


def test_a_joint_refusal_counts_when_all_have_given_it(stages: list[Stage]) -> None:
    promiser = Promiser()
    delivery: Delivery[Any, Any] = Delivery(promiser, joint)
    delivery.send(stages[0].engine.question, *(stage.line for stage in stages))
    requests = [request(stage) for stage in stages]
    assert delivery.owing == [stage.line.address for stage in stages]
    for stage, each in zip(stages, requests, strict=True):
        assert promiser.answers == []
        stage.refuse(each, Overloaded("it", 1, "limit"))
    assert len(promiser.answers) == 1
    assert joint(promiser.answers[0])


@pytest.mark.parametrize("first", [True, False])
def test_a_joint_refusal_beside_an_acknowledgement_says_nothing(
    stages: list[Stage], *, first: bool
) -> None:
    stages = stages[:2]
    promiser = Promiser()
    delivery: Delivery[Any, Any] = Delivery(promiser, joint)
    delivery.send(stages[0].engine.question, *(stage.line for stage in stages))
    requests = [request(stage) for stage in stages]
    stages[not first].refuse(requests[not first], Overloaded("it", 1, "limit"))
    stages[first].hear(requests[first], stages[first].engine.answer)
    assert (promiser.answers, promiser.losses) == ([], [True])


def test_an_acknowledgement_that_is_objected_to_ends_a_delivery(stages: list[Stage]) -> None:
    answer = stages[0].engine.answer
    promiser = Promiser()
    delivery: Delivery[Any, Any] = Delivery(promiser, objection=lambda each: each == answer)
    delivery.send(stages[0].engine.question, *(stage.line for stage in stages))
    stages[1].hear(request(stages[1]), answer)
    assert promiser.answers == [answer]
    assert not delivery.under_way
