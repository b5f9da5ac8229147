"""Verbs that logs have, and how they refuse those of other engines."""

import inspect
from collections.abc import Mapping
from typing import Any

import pytest

from anabranch.client import (
    erwin_log,
    logs,
    speculative_log,
    sync_erwin_log,
    sync_speculative_log,
)
from anabranch.client.bolt import log as bolt_log
from anabranch.client.bolt import sync_log as bolt_sync_log
from anabranch.client.session.verbs import COMMON, OWN
from anabranch.core.errors import NotOffered

LOGS: Mapping[str, tuple[type[Any], type[Any]]] = {
    "bolt": (bolt_log.Log, bolt_sync_log.Log),
    "belfast": (speculative_log.SpeculativeLog, sync_speculative_log.SpeculativeLog),
    "erwin": (erwin_log.ErwinLog, sync_erwin_log.ErwinLog),
}
TYPES = [
    pytest.param(engine, kind, id=f"{engine}-{number}")
    for engine, kinds in LOGS.items()
    for number, kind in enumerate(kinds)
]


def verbs_of(kind: type[Any]) -> set[str]:
    """Without what programs don't call: properties, and what a log's parts share."""
    return {
        name
        for name, each in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    }


@pytest.mark.parametrize("protocol", [logs.AsyncLog, logs.AnyLog])
def test_every_log_has_the_common_verbs_and_no_other_is_promised(protocol: type[Any]) -> None:
    assert verbs_of(protocol) == set(COMMON)


@pytest.mark.parametrize(("engine", "kind"), TYPES)
def test_a_log_has_the_verbs_of_every_log_and_those_of_its_engine(
    engine: str, kind: type[Any]
) -> None:
    assert verbs_of(kind) >= {*COMMON, *OWN[engine]}


@pytest.mark.parametrize("engine", LOGS)
def test_a_refusal_names_all_that_a_program_may_ask(engine: str) -> None:
    """The logs of programs without an event loop have no other methods."""
    assert verbs_of(LOGS[engine][1]) == {*COMMON, *OWN[engine]}


@pytest.mark.parametrize(("engine", "kind"), TYPES)
def test_a_common_verb_takes_what_every_log_s_does(engine: str, kind: type[Any]) -> None:
    protocol = logs.AsyncLog if kind in {each[0] for each in LOGS.values()} else logs.AnyLog
    for verb in COMMON:
        wanted = inspect.signature(getattr(protocol, verb)).parameters.values()
        given = inspect.signature(getattr(kind, verb)).parameters
        for each in wanted:
            if each.kind is not inspect.Parameter.POSITIONAL_ONLY:
                assert given[each.name].default == each.default, (engine, verb, each.name)


@pytest.mark.parametrize(("engine", "kind"), TYPES)
def test_a_verb_of_another_engine_is_refused_by_name(engine: str, kind: type[Any]) -> None:
    class Named(kind):
        name = "ticks"

        def __init__(self) -> None:
            """It is asked for nothing but its verbs."""

    log = Named()
    for other, verbs in OWN.items():
        if other != engine:
            for verb in set(verbs) - set(OWN[engine]):
                refused = f"ticks is a log of the {engine} engine.* no {verb}"
                with pytest.raises(NotOffered, match=refused):
                    getattr(log, verb)("whatever", what=1)
    assert not hasattr(log, "nonsense")
