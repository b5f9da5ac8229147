"""An error speaks to whoever reads it: to programs by itself, elsewhere in that front's words."""

import inspect
from collections.abc import Mapping
from string import Formatter

import pytest

from anabranch.apps.http import advice as http
from anabranch.cli import advice as cli
from anabranch.core.errors import (
    BY_CODE,
    AnabranchError,
    EngineNotServed,
    FrontNotServed,
    UnknownLog,
    WrongEngine,
    reworded,
)

FRONTS = {"cli": cli.WORDS, "http": http.WORDS}


def named(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def facts_of(kind: type[AnabranchError]) -> set[str]:
    return named(kind.says) | inspect.signature(kind.__init__).parameters.keys()


@pytest.mark.parametrize("words", FRONTS.values(), ids=FRONTS)
def test_words_are_for_errors_that_exist_and_name_facts_that_they_have(
    words: Mapping[str, str],
) -> None:
    assert list(words) == sorted(words)
    for key, said in words.items():
        code, _, asked = key.partition("/")
        assert code in BY_CODE
        assert named(said) <= facts_of(BY_CODE[code]), key
        assert not asked or "asked" in facts_of(BY_CODE[code]), key


def test_words_may_be_for_what_was_asked() -> None:
    words = {"wrong-engine": "elsewhere", "wrong-engine/fork": "never"}
    assert reworded(WrongEngine("ticks", "belfast", "fork"), words) == "never"
    assert reworded(WrongEngine("ticks", "belfast", "read"), words) == "elsewhere"


def test_errors_themselves_name_neither_commands_nor_paths_of_logs() -> None:
    for code, kind in BY_CODE.items():
        if kind.__module__.endswith("storage") or kind in (EngineNotServed, FrontNotServed):
            continue  # Their readers run servers, which the command line does.
        for word in ("`anabranch", "--", "/v1/", "Idempotency-Key"):
            assert word not in kind.says, code


def test_an_error_without_the_facts_of_this_version_speaks_for_itself() -> None:
    error = UnknownLog("orders")
    assert reworded(error, {"unknown-log": "no {log}"}) == "no orders"
    assert reworded(error, {"unknown-log": "no {logs}"}) == error.message
    assert reworded(error, {}) == error.message
