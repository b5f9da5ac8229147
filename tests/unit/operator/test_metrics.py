"""The operator's metrics: every one is declared with its help text, and served."""

import re

from anabranch_operator.metrics import HELP, Metrics
from anabranch_operator.plan.engine.events import Elected
from anabranch_operator.plan.engine.operator import Operator
from anabranch_operator.plan.engine.world import Surroundings


def page() -> str:
    machine = Operator(Surroundings(namespace="demo", release="demo"), {}, ())
    machine.step(0, Elected(1))
    return Metrics(machine, lambda: 0, lambda: 0.0).page().decode()


def test_what_is_declared_is_served_with_its_help_text() -> None:
    served = dict(re.findall(r"^# HELP (anabranch_operator_\w+) (.*)$", page(), re.MULTILINE))
    created = {name for name in served if name.endswith("_created")}
    assert {name: text for name, text in served.items() if name not in created} == HELP
