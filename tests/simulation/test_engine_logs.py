"""The rules that answers about another engine's logs are held to: each is broken by one answer."""

from itertools import count

import pytest
from tests.unit.described import described as any_log

from anabranch.core.bolt.protocol.commands import BOLT, Description, EngineSettings
from anabranch.core.bolt.protocol.queries import Listing
from anabranch.core.errors import LogExists, Unavailable
from anabranch.core.types import LogId
from anabranch_sim.bolt.engine_logs import (
    ENGINE,
    Asked,
    CatalogueAccount,
    Change,
    Declaration,
    LogAccount,
)

SETTINGS = EngineSettings(shards=2, addresses=("host:1",))
OTHERS = EngineSettings(shards=3, addresses=("host:1",))


def described(
    id: int = 1,
    name: str = "ticks",
    owner: str = "",
    engine: str = ENGINE,
    settings: EngineSettings | None = SETTINGS,
) -> Description:
    return any_log(LogId(id), name, owner=owner, engine=engine, settings=settings)


def listing(*logs: Description) -> Listing:
    return Listing(list(logs), more=False)


def account(*names: str) -> CatalogueAccount:
    """These are asked for."""
    kept = CatalogueAccount(count(10).__next__)
    kept.declarations += [Declaration(1, name=name, settings=SETTINGS) for name in names]
    return kept


def rules(kept: CatalogueAccount) -> list[str]:
    return [fault.split(":")[0] for fault in kept.faults]


def test_answers_as_they_should_be_break_no_rule() -> None:
    kept = account("ticks", "orders")
    kept.described(described(), 5)
    kept.listed(listing(described(), described(2, "orders", owner="desk")), 20)
    kept.check_settings(described(), 30)
    assert kept.faults == []


@pytest.mark.parametrize(
    "other",
    [described(2), described(1, "orders"), described(2, "orders", owner="desk")],
    ids=["name", "id", "owner"],
)
def test_two_logs_of_one_name_or_owner_are_a_fault(other: Description) -> None:
    kept = account("ticks", "orders")
    kept.listed(listing(described(owner="desk"), other), 5)
    assert "N1" in rules(kept)


def test_what_was_acknowledged_and_is_not_listed_is_a_fault() -> None:
    kept = account("ticks")
    kept.described(described(), 5)
    kept.listed(listing(), 20)
    assert rules(kept) == ["N2"]


@pytest.mark.parametrize(("deletion", "fault"), [(Asked(6), False), (Asked(6, refused=True), True)])
def test_what_may_be_deleted_may_be_missing(deletion: Asked, fault: bool) -> None:
    kept = account("ticks")
    kept.described(described(), 5)
    kept.logs[LogId(1)].deletions.append(deletion)
    kept.listed(listing(), 20)
    assert rules(kept) == ["N2"] * fault


def test_what_was_deleted_and_is_described_is_a_fault() -> None:
    kept = account("ticks")
    kept.logs[LogId(1)] = LogAccount("ticks", deletions=[Asked(2, returned=3)])
    kept.described(described(), 2)
    assert kept.faults == [], "the answer may be older than the deletion"
    kept.described(described(), 5)
    assert rules(kept) == ["N2"]


@pytest.mark.parametrize(
    "half",
    [
        described(engine=BOLT),
        described(settings=None),
        described(settings=OTHERS),
        described(name="nobody-asked"),
    ],
    ids=["engine", "no settings", "settings", "name"],
)
def test_a_log_that_nobody_asked_for_like_this_is_a_fault(half: Description) -> None:
    kept = account("ticks")
    kept.described(half, 5)
    assert set(rules(kept)) == {"N3"}


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ([], False),
        ([Change(6, 7, settings=OTHERS)], True),
        ([Change(6, settings=OTHERS)], False),
        ([Change(6, refused=True, settings=OTHERS)], False),
        ([Change(6, 7, settings=OTHERS), Change(8, 9, settings=SETTINGS)], False),
        ([Change(6, 9, settings=OTHERS), Change(7, 8, settings=SETTINGS)], False),
    ],
    ids=["none", "later", "unknown", "refused", "back again", "at one time"],
)
def test_settings_are_the_last_that_were_acknowledged(changes: list[Change], fault: bool) -> None:
    kept = account("ticks")
    kept.declarations[0].returned, kept.declarations[0].log = 2, LogId(1)
    kept.described(described(), 5)
    kept.logs[LogId(1)].changes += changes
    kept.check_settings(described(), 30)
    assert rules(kept) == ["N4"] * fault


def test_bolt_that_serves_another_engines_log_is_a_fault() -> None:
    kept = account("ticks")
    kept.refused_by_bolt("a read", Unavailable("the log", "it is busy"))
    assert kept.faults == []
    kept.refused_by_bolt("a read", listing())
    assert rules(kept) == ["N5"]


def test_only_a_refusal_for_good_says_that_nothing_was_done() -> None:
    kept = account()
    asked = [Asked(1), Asked(1), Asked(1)]
    kept.told(asked[0], described())
    kept.told(asked[1], Unavailable("the log", "it is busy"))
    kept.told(asked[2], LogExists("ticks"))
    assert [each.refused for each in asked] == [False, False, True]
    assert asked[0].returned == 10
