"""A log's status as tables."""

from tests.unit.belfast_status import log_status, shard_status

from anabranch.cli.render.belfast import (
    OVERVIEW,
    SHARDS,
    WINDOWS,
    Rates,
    notes,
    overview,
    shards,
    windows,
)
from anabranch.core.belfast.ledger.windows import Mode
from anabranch.core.belfast.protocol.messages import ShardStatus, Status


def shard(name: str, *, records: int = 0, foretold: int = 0, voided: int = 0) -> ShardStatus:
    return shard_status(
        name=name,
        primary=f"{name}:1",
        replicas=(f"{name}:1", f"{name}:2"),
        next_quota=12,
        window=3,
        rounds=7,
        records=records,
        noops=records // 4,
        queued=1,
        signals=2,
        silent=(f"{name}:2",),
        last=600,
        foretold=foretold,
        voided=voided,
    )


def status(*found: ShardStatus) -> Status:
    return log_status(
        *found,
        term=2,
        index=9,
        view=1,
        mode=Mode.FREE_WILL,
        window=3,
        cut=7,
        published=4,
        confirmed=300,
        horizon=4_000,
        t_ord_us=1_000,
        views_changed=1,
        cuts_made=70,
        foretold=sum(each.foretold for each in found),
        voided=sum(each.voided for each in found),
    )


def cells(columns: tuple[str, ...], row: tuple[str, ...]) -> dict[str, str]:
    return dict(zip((name.lstrip(">") for name in columns), row, strict=True))


def test_a_log_and_its_shards_say_what_was_foretold_and_what_was_void() -> None:
    found = status(shard("a", records=400, foretold=300, voided=5), shard("b"))
    (log,) = overview(found)
    told = cells(OVERVIEW, log)
    assert (told["SPEC%"], told["VOIDED"], told["MODE"]) == ("75.0%", "5", "free will")
    assert told["AHEAD"] == "3700"
    first, second = (cells(SHARDS, row) for row in shards(found))
    assert (first["SPEC%"], first["VOIDED"], first["NO-OPS"]) == ("75.0%", "5", "100 (20.0%)")
    assert first["STANDING"] == "seated, 1 silent"
    assert (second["SPEC%"], second["VOIDED"], second["NO-OPS"]) == ("-", "0", "0 (-)")


def test_a_log_to_which_shards_have_yet_to_join_says_so() -> None:
    found = status(shard("a"), shard("b"))
    assert list(notes(found, 3)) == ["2 of 3 shards have joined so far"]
    for expected in (0, 2):
        assert not list(notes(found, expected))


def test_rates_are_of_what_came_between_two_looks() -> None:
    rates = Rates()
    (first,) = rates.rows(status(shard("a", records=400, foretold=100)), 10.0)
    (second,) = rates.rows(status(shard("a", records=600, foretold=290)), 12.0)
    told = cells(Rates.columns, first)
    assert (told["RECORDS/s"], told["SPEC%"]) == ("-", "-")
    told = cells(Rates.columns, second)
    assert (told["RECORDS/s"], told["NO-OPS/s"], told["SPEC%"]) == ("100", "25", "95.0%")


def test_windows_show_the_quota_of_the_one_that_is_cut_and_of_the_last_published() -> None:
    (row,) = windows(status(shard("a")))
    told = cells(WINDOWS, row)
    assert (told["QUOTA"], told["NEXT QUOTA"]) == ("10", "12 of window 4")
    assert told["ROUNDS"] == "7 of window 3"
