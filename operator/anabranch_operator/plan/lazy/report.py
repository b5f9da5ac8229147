"""A lazy front's survey and its leader's status, in the words that all engines share."""

from msgspec.structs import replace

from anabranch_operator.api.anabranch_names import LogSurvey, SequencingStatus
from anabranch_operator.plan.erwin import report as erwin
from anabranch_operator.plan.groups.report import Report


def report(survey: LogSurvey, status: SequencingStatus | None) -> Report:
    """`status`: what the leader says; None if there is none at the moment."""
    found = erwin.report(survey, status)
    assert found.sequencing is not None, "a survey tells of its controllers"
    held_up = "" if status is None else status.held_up
    lasts_ms = None if status is None or status.ring_lasts_ms < 0 else status.ring_lasts_ms
    sequencing = replace(found.sequencing, held_up=held_up, ring_lasts_ms=lasts_ms)
    # The log decides each view: without it no view could go on without a sequencer that ends.
    away = survey.obstacle or held_up
    return replace(found, sequencing=sequencing, reached=() if away else found.reached)
