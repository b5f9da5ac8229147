"""What a task is told comes to it as it was."""

import pickle

from anabranch import Plan, PlannedSlice
from anabranch.core.bolt.protocol.scans import PlanId
from anabranch.core.types import LogId, ObjectId
from anabranch_spark.options import read_options
from anabranch_spark.source.parts import packed, parts_of, unpacked

PLAN = Plan(PlanId(0xAB), LogId(3), "orders", 0, 400, 1, 400, 5, 10, "test")
SLICES = [
    PlannedSlice(nth * 100, 100, ObjectId(1 << 60), 0, 50, 0, LogId(3), nth, (1 << 64) - 1)
    for nth in range(4)
]


def test_parts_cover_the_plan_and_survive_the_way_to_a_task() -> None:
    options = read_options({"log": "orders", "partitionBytes": "100"}, "batch")
    parts = [*parts_of("orders", PLAN, SLICES, options, ends=True)]
    assert [(part.start, part.end) for part in parts] == [(0, 200), (200, 400)]
    assert [unpacked(pickle.loads(pickle.dumps(packed(part)))) for part in parts] == parts
    assert parts[1].name == "orders[200..400), part 2 of 2, plan 00000000000000ab"


def test_only_the_task_of_an_only_part_ends_the_plan() -> None:
    two = read_options({"log": "orders", "minPartitions": "2"}, "batch")
    one = read_options({"log": "orders"}, "batch")
    assert [part.ends for part in parts_of("orders", PLAN, SLICES, two, ends=True)] == [False] * 2
    assert [part.ends for part in parts_of("orders", PLAN, SLICES, one, ends=True)] == [True]
    assert [part.ends for part in parts_of("orders", PLAN, SLICES, one, ends=False)] == [False]
