"""What clients of a shared log saw, and whether any one forkable log could have shown it to them.

Linearizability is hard to decide in general; a log whose records are all different fixes its own
order, so that what is left is sorting and sweeping. One checker serves simulated and real runs.
"""

from anabranch.core.history.calls import History
from anabranch.core.history.content import content_violations
from anabranch.core.history.cursors import cursor_violations
from anabranch.core.history.family import Family, Violation
from anabranch.core.history.fates import fate_violations
from anabranch.core.history.order import order_violations
from anabranch.core.history.settlement import settlement_violations
from anabranch.core.history.streams import stream_violations

__all__ = ["History", "Violation", "check"]


def check(history: History) -> list[Violation]:
    """Every rule that this history breaks; none means that a correct service could have made it."""
    family = Family(history)
    found = list(family.violations)
    for rule in (
        fate_violations,
        cursor_violations,
        content_violations,
        order_violations,
        settlement_violations,
        stream_violations,
    ):
        found.extend(rule(family))
    return found
