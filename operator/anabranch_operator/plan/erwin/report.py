"""An Erwin log's survey and its leader's status, in the words that all engines share."""

from collections.abc import Iterator

from anabranch_operator.api.anabranch_names import LogSurvey, SequencingStatus, ShardPlace
from anabranch_operator.plan.groups.report import Report, Sequencing, ShardReport, Standing

FRESH_MS = 10_000
"""A controller that leads speaks several times a second. What it said longer ago than this says
nothing of who can be spared now.
"""


def report(survey: LogSurvey, status: SequencingStatus | None) -> Report:
    """`status`: what the leader says; None if there is none at the moment."""
    unheard = _unheard(survey)
    steady = not survey.changing and not unheard
    away = {*survey.silent, *survey.leaving}
    return Report(
        leader=survey.leader,
        members=survey.sequencers,
        # While the view changes nobody can be spared, nor while nobody says who is silent.
        reached=tuple(node for node, _ in survey.members if steady and node not in away),
        age=(survey.version, 0),
        view=survey.view,
        trimmed=0 if status is None else status.trimmed,
        settled=None if status is None else status.stable,
        shards=tuple(_shards(survey, known=not unheard)),
        sequencing=Sequencing(
            changing=survey.changing,
            obstacle=survey.obstacle,
            unheard=unheard,
            taking_over=survey.taking_over,
            lost_views=len(survey.lost_views),
            durability=survey.durability,
            tail=None if status is None else status.tail,
            backlog=None if status is None else status.backlog_records,
        ),
    )


def _unheard(survey: LogSurvey) -> str:
    if survey.age_ms < 0:
        return f"no controller has told {survey.node} what it does"
    if survey.age_ms > FRESH_MS:
        return f"{survey.node} last heard of a controller {survey.age_ms // 1_000} s ago"
    return ""


def _shards(survey: LogSurvey, *, known: bool) -> Iterator[ShardReport]:
    """A shard that was removed and added again has two places: the last one counts."""
    last = {place.name: place for place in survey.shards}
    for place in last.values():
        yield ShardReport(
            name=place.name,
            standing=_standing(place),
            epoch=place.epoch,
            primary=place.primary,
            replicas=place.replicas,
            silent=tuple(_silent(survey, place, known=known)),
        )


def _standing(place: ShardPlace) -> Standing:
    if place.removed:
        return Standing.LEFT
    if not place.epoch:
        return Standing.WAITING
    return Standing.SEATED if place.open else Standing.LEAVING


def _silent(survey: LogSurvey, place: ShardPlace, *, known: bool) -> Iterator[str]:
    """While a shard gets another primary, none of its replicas can be spared."""
    unsure = not known or place.name in survey.taking_over
    for node in place.replicas:
        if unsure or node in survey.silent or node in survey.leaving:
            yield node
