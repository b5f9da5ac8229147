"""One question, put to one node after the other."""

from typing import Any

from tests.unit.client.session.stage import ENGINES, Stage

from anabranch.client.session.inquiry import Inquiry
from anabranch.core.errors import Overloaded
from anabranch.core.errors.refused import Refused


def test_a_late_answer_of_one_that_is_not_waited_for_counts_as_well() -> None:
    got: list[Any] = []
    stage = Stage(ENGINES["belfast"])
    inquiry: Inquiry[Any, Any] = Inquiry(stage.engine.question, got.append)
    inquiry.ask(stage.line)
    inquiry.ask(stage.line)
    stage.connect()
    stage.hear(1, stage.engine.answer)
    assert got == [stage.engine.answer]
    assert inquiry.under_way
    stage.hear(2, stage.engine.answer)
    assert got == [stage.engine.answer] * 2
    assert not inquiry.under_way


def test_a_node_that_is_gone_or_refuses_is_not_waited_for() -> None:
    got: list[Any] = []
    stage = Stage(ENGINES["belfast"])
    inquiry: Inquiry[Any, Any] = Inquiry(stage.engine.question, got.append)
    inquiry.ask(stage.line)
    stage.connect()
    refusal = Refused.of(Overloaded("it", 1, "limit"))
    stage.hear(1, refusal)
    assert not inquiry.under_way
    inquiry.ask(stage.line)
    stage.line.broken("it broke")
    assert not inquiry.under_way
    assert got == [refusal]
