"""An Erwin log's status as tables."""

import json

from anabranch.cli.render.erwin import (
    OVERVIEW,
    SHARDS,
    Rates,
    document,
    notes,
    overview,
    shards,
)
from anabranch.core.sequencing.protocol.messages import SequencingStatus, ShardProgress


def shard(name: str, *, primary: str = "", records: int = 0, reads: int = 0) -> ShardProgress:
    return ShardProgress(
        name=name,
        primary=primary or f"/7/{name}-0",
        replicas=(f"/7/{name}-0", f"/7/{name}-1"),
        epoch=2,
        upto=90,
        records=records,
        noops=records // 3,
        reads=reads,
        slow_reads=reads // 4,
        orphans=1,
    )


def status(*found: ShardProgress) -> SequencingStatus:
    return SequencingStatus(
        version=4,
        view=3,
        leader="/7/sequencer-0",
        members=("/7/sequencer-0", "/7/sequencer-1"),
        mode="st",
        durability="memory",
        stable=80,
        tail=100,
        trimmed=10,
        backlog_records=20,
        backlog_bytes=2_048,
        ring_bytes_max=1 << 20,
        shards=found,
        lost_views=((2, 1_700_000_000_000),),
    )


def test_one_row_says_what_the_leader_sees() -> None:
    (row,) = overview(status())
    assert dict(zip(OVERVIEW, row, strict=True)) == {
        "LEADER": "/7/sequencer-0",
        ">VIEW": "3",
        ">MEMBERS": "2",
        "MODE": "st",
        "DURABLE": "in memories",
        ">STABLE": "80",
        ">TAIL": "100",
        ">TRIMMED": "10",
        ">BACKLOG": "20",
        "RING": "2.0 KiB of 1.0 MiB",
    }


def test_a_row_says_how_a_shard_does() -> None:
    (row,) = shards(status(shard("shard-0", records=30, reads=8)))
    assert dict(zip(SHARDS, row, strict=True)) == {
        "SHARD": "shard-0",
        "PRIMARY": "/7/shard-0-0",
        ">EPOCH": "2",
        ">REPLICAS": "2",
        ">BEHIND": "10",
        ">RECORDS": "30",
        ">NO-OPS": "10 (25.0%)",
        ">READS": "8",
        ">SLOW%": "25.0%",
        ">ORPHANS": "1",
    }


def test_shards_are_shown_in_the_order_of_their_names() -> None:
    names = ["shard-0", "shard-2", "shard-10"]
    joined = status(*map(shard, reversed(names)))
    assert [row[0] for row in shards(joined)] == names
    assert [row[0] for row in Rates().rows(joined, 1.0)] == names


def test_lost_views_and_missing_shards_are_told() -> None:
    counted, joined, said = notes(status(shard("shard-0")), 2)
    assert counted == "RECORDS and what follows are counted since the shard's primary started"
    assert joined == "1 of 2 shards have joined so far"
    assert "view 2 was lost" in said
    assert "2023-11-14 22:13:20+00:00" in said


def test_rates_are_between_two_looks_at_one_primary() -> None:
    rates = Rates()
    first = status(shard("shard-0", records=10, reads=4), shard("shard-1"))
    for row in rates.rows(first, 1.0):
        assert row[2:6] == ("-",) * 4
    second = status(
        shard("shard-0", records=40, reads=12), shard("shard-1", primary="/7/shard-1-1")
    )
    counted, moved = rates.rows(second, 3.0)
    assert counted == ("shard-0", "/7/shard-0-0", "15", "5", "4", "25.0%", "10")
    assert moved[2:6] == ("-",) * 4


def test_programs_get_every_field_by_its_name() -> None:
    found = json.loads(json.dumps(document(status(shard("shard-0")))))
    assert found["durability"] == "memory"
    assert found["shards"][0]["slow_reads"] == 0
    assert found["lost_views"] == [{"view": 2, "found_at": 1_700_000_000_000}]
