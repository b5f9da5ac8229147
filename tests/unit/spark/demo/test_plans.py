"""The demo's plans differ in the mistake alone."""

import json

from anabranch_spark.demo.plans import MARGIN, mistaken, restocks

SHORT = [{"item": f"item-0{n}", "lowest": -10 * n} for n in range(1, 5)]


def test_a_plan_restocks_what_lacks() -> None:
    plan = [json.loads(each) for each in restocks(SHORT)]
    assert [each["quantity"] for each in plan] == [MARGIN + 10 * n for n in range(1, 5)]
    assert {each["kind"] for each in plan} == {"restock"}


def test_the_mistaken_plan_has_a_word_and_a_negative_quantity() -> None:
    plan = restocks(SHORT)
    wrong = mistaken(plan)
    assert wrong[1:-1] == plan[1:-1]
    assert json.loads(wrong[0])["quantity"] < 0
    assert json.loads(wrong[-1])["quantity"] == "plenty"
