"""What controllers say of an Erwin log, as tables."""

from msgspec.structs import replace

from anabranch.cli.render.survey import document, nodes, notes, overview, shards
from anabranch.core.sequencing.protocol.messages import LogSurvey, ShardPlace

PLACE = ShardPlace(
    number=0,
    name="a",
    nodes=("h0:1", "h1:1"),
    epoch=2,
    primary="h0:1",
    replicas=("h0:1",),
    open=True,
    removed=False,
)
LOST = ((1, 1_700_000_000_000),)
FOUND = LogSurvey(
    node="s0:1",
    version=7,
    term=3,
    view=2,
    leader="s0:1",
    members=(("s0:1", 11), ("s1:1", 12)),
    sequencers=("s0:1", "s1:1", "s2:1"),
    mode="m",
    durability="fsync",
    shards=(PLACE,),
    lost_views=(),
    controller="s1:1/controller",
    age_ms=40,
    obstacle="",
    changing="",
    silent=("s2:1", "h1:1"),
    leaving=("s1:1",),
    taking_over=(),
)


def test_each_sequencer_is_shown_with_its_part_and_state() -> None:
    assert list(nodes(FOUND)) == [
        ("s0:1", "leader", "there"),
        ("s1:1", "yes", "about to end"),
        ("s2:1", "no", "silent"),
    ]
    (row,) = overview(FOUND)
    assert row == ("7", "2", "s0:1", "s1:1/controller", "-", "m", "fsync")


def test_each_shard_is_shown_with_its_state() -> None:
    changed = {
        "open": PLACE,
        "closed": replace(PLACE, open=False),
        "removed": replace(PLACE, open=False, removed=True),
        "its replicas have yet to come": replace(PLACE, epoch=0, primary="", replicas=()),
    }
    found = [row[1] for row in shards(replace(FOUND, shards=tuple(changed.values())))]
    assert found == list(changed)
    (row,) = shards(replace(FOUND, taking_over=("a",)))
    shown = "h0:1, h1:1 (not yet); silent: h1:1"
    assert row == ("a", "gets another primary", "2", "h0:1", shown)


def test_shards_are_in_the_order_of_their_names_as_in_the_status() -> None:
    joined = ["shard-10", "shard-1", "shard-2"]
    places = [replace(PLACE, number=number, name=name) for number, name in enumerate(joined)]
    shown = [row[0] for row in shards(replace(FOUND, shards=tuple(places)))]
    assert shown == ["shard-1", "shard-2", "shard-10"]


def test_it_is_said_when_no_controller_leads() -> None:
    assert list(notes(FOUND)) == []
    (lost,) = notes(replace(FOUND, lost_views=LOST))
    assert lost.startswith("view 1 was lost")
    (never,) = notes(replace(FOUND, age_ms=-1, controller=""))
    assert never == "no controller has said anything to s0:1"
    late, why = notes(replace(FOUND, age_ms=9_000, obstacle="h1 has yet to come"))
    assert "9 s ago" in late
    assert why == "h1 has yet to come"


def test_programs_get_every_field_by_its_name() -> None:
    found = document(replace(FOUND, lost_views=LOST))
    assert found["members"] == [{"node": "s0:1", "life": 11}, {"node": "s1:1", "life": 12}]
    assert found["lost_views"] == [{"view": 1, "found_at": 1_700_000_000_000}]


def test_shards_are_shown_by_number_and_not_in_the_order_in_which_they_have_come() -> None:
    places = [replace(PLACE, number=number, name=f"shard-{number}") for number in (10, 0, 2)]
    found = [row[0] for row in shards(replace(FOUND, shards=tuple(places)))]
    assert found == ["shard-0", "shard-2", "shard-10"]
