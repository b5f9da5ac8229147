"""What is said of a log whose sequencers are members of views: Erwin's, and a lazy front."""

from collections.abc import Iterator

from anabranch_operator.api.conditions import Reason, Type
from anabranch_operator.plan.engine.status import Said
from anabranch_operator.plan.groups.engine import Flaw
from anabranch_operator.plan.groups.report import Report
from anabranch_operator.plan.groups.sequencer_members import Sight


def obstacle(report: Report, waits: str) -> Flaw | None:
    """A log that has a view is ready though nothing can be reconfigured. `waits`: what a log
    without one waits for.
    """
    found = report.sequencing
    why = "" if found is None else found.obstacle or found.unheard
    if not report.view:
        message = why or waits
        return Reason.NO_VIEW, f"no view has begun yet: {message}"
    if found is not None and found.changing and found.obstacle:
        return Reason.OBSTRUCTED, f"appends wait for the next view: {found.obstacle}"
    return None


def flaws(report: Report) -> Iterator[Flaw]:
    found = report.sequencing
    if found is None:
        return
    if found.obstacle:
        yield Reason.OBSTRUCTED, f"the controller can't go on: {found.obstacle}"
    if found.unheard:
        yield Reason.CONTROLLER_AWAY, f"nothing can be reconfigured: {found.unheard}"


def conditions(sight: Sight) -> Iterator[Said]:
    report = sight.status
    changing = "" if report is None or report.sequencing is None else report.sequencing.changing
    if report is None:
        yield Said(Type.SEALED, None, Reason.SEQUENCERS_AWAY, sight.why)
        yield Said(Type.RECONFIGURING, None, Reason.SEQUENCERS_AWAY, sight.why)
        return
    if not report.view:
        yield Said(Type.SEALED, False, Reason.NO_VIEW, "no view has begun yet")
    elif changing:
        message = f"appends wait until view {report.view + 1} has begun"
        yield Said(Type.SEALED, True, Reason.VIEW_SEALED, message)
    else:
        message = "the members of the view take appends"
        yield Said(Type.SEALED, False, Reason.VIEW_STARTED, message)
    if changing:
        message = f"view {report.view + 1} is being made: {changing}"
        yield Said(Type.RECONFIGURING, True, Reason.VIEW_CHANGING, message)
    else:
        yield Said(Type.RECONFIGURING, False, Reason.UNCHANGED, "the view stays as it is")
