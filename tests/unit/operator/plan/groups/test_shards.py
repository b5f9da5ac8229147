"""ShardGroups: shards join, leave before their pods go, and are rolled one replica at a time."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.operator.belfast_log import (
    BAD,
    GROUP,
    LOG,
    LOOK_S,
    VOLUME,
    BelfastHarness,
    environment,
    setting,
)

from anabranch.apps.pods.log_settings import Durability, SequencerSettings, ShardSettings, load
from anabranch_operator.plan.engine.actions import Delete, JoinShard, LeaveShard
from anabranch_operator.plan.engine.events import Vitals
from anabranch_operator.plan.groups.report import Standing


def test_shards_have_their_pods_and_get_their_seats(harness: BelfastHarness) -> None:
    assert harness.names() == ["orders-0-0", "orders-0-1", "orders-1-0", "orders-1-1"]
    status = harness.group.status
    assert (status.shards, status.desired, status.seated, status.pods) == (2, 2, 2, 4)
    assert status.selector == "anabranch.dev/role=shard,anabranch.dev/shards=orders"
    shown = [(each.name, each.standing, each.primary, each.copies) for each in status.seats]
    assert shown == [
        ("orders-0", "Seated", "orders-0-0", 2),
        ("orders-1", "Seated", "orders-1-0", 2),
    ]
    assert harness.condition("Ready")[:2] == ("True", "Seated")
    assert harness.condition("WindowOpen")[:2] == ("True", "WindowPublished")
    assert harness.condition("Joining")[:2] == ("False", "NoneJoins")
    assert harness.condition("Leaving")[:2] == ("False", "NoneLeaves")
    harness.office.wait(60)
    version = harness.kube.version
    harness.office.wait(7_200)
    assert harness.kube.version == version, "nothing moves, and nothing is written"


def test_a_replica_knows_its_shard_the_others_and_the_sequencers(harness: BelfastHarness) -> None:
    seen = harness.pod("orders-1-1")
    home = "orders-shards.demo.svc:7450"
    assert setting(seen, "SHARD") == "orders-1"
    assert setting(seen, "ADDRESS") == f"orders-1-1.{home}"
    assert setting(seen, "REPLICAS") == f"orders-1-0.{home},orders-1-1.{home}"
    assert setting(seen, "SEQUENCERS").startswith("orders-sequencer-0.orders-sequencers.demo.svc")
    assert setting(seen, "DURABILITY") == "fsync"
    assert seen.spec["securityContext"]["fsGroup"] == 65_532
    affinity = seen.spec["affinity"]["podAntiAffinity"]
    (term,) = affinity["preferredDuringSchedulingIgnoredDuringExecution"]
    apart = term["podAffinityTerm"]["labelSelector"]["matchLabels"]
    assert apart == {"anabranch.dev/shard": "orders-1"}, "copies of one shard, not all shards"


def test_pods_note_on_their_volume_how_far_their_journals_went(harness: BelfastHarness) -> None:
    for name, kind in (
        ("orders-0-0", ShardSettings),
        ("orders-sequencer-0", SequencerSettings),
    ):
        pod = harness.pod(name)
        (mount,) = [
            each for each in pod.spec["containers"][0]["volumeMounts"] if each["name"] == "data"
        ]
        found = load(kind, {}, environment(pod))
        assert found.reached_file == f"{mount['mountPath']}/belfast.reached"
        assert found.data == f"{mount['mountPath']}/belfast", "the note is outside of it"


def test_pods_that_sync_no_journal_note_nothing() -> None:
    """A node that fails may lose the end of such a journal, and the replica must come back."""
    harness = BelfastHarness(shards={"durability": "memory"})
    harness.settle()
    assert load(ShardSettings, {}, environment(harness.pod("orders-0-0"))).reached_file == ""


def test_a_replica_understands_what_it_is_told() -> None:
    harness = BelfastHarness(shards={"quota": 7, "durability": "memory", "copies": 3})
    harness.settle()
    found = load(ShardSettings, {}, environment(harness.pod("orders-1-2")))
    assert found.address == found.replicas[2]
    assert (found.shard, found.quota, found.durability) == ("orders-1", 7, Durability.MEMORY)
    assert len(found.sequencers) == 3


def test_without_sequencers_there_is_nothing_to_join() -> None:
    harness = BelfastHarness(shards={"sequencers": "others"})
    harness.step()
    assert harness.names() == []
    assert harness.condition("Ready")[:2] == ("False", "SequencersMissing")


def test_a_shard_that_is_added_joins_until_a_window_holds_it(harness: BelfastHarness) -> None:
    harness.edit(GROUP, shards=3)
    assert harness.names()[-2:] == ["orders-2-0", "orders-2-1"]
    assert harness.condition("Joining")[:2] == ("True", "AwaitingSeats")
    assert harness.condition("Ready")[:2] == ("False", "AwaitingSeats")
    harness.settle()
    assert harness.standing("orders-2") is Standing.SEATED
    assert harness.condition("Joining")[0] == "False"
    assert harness.group.status.seated == 3


def test_a_shard_leaves_and_stays_until_its_records_are_trimmed(harness: BelfastHarness) -> None:
    harness.edit(GROUP, shards=1)
    assert [each.shard for each in harness.done(LeaveShard)] == ["orders-1"]
    assert harness.condition("Leaving")[:2] == ("True", "AwaitingBoundary")
    harness.settle()
    assert harness.standing("orders-1") is Standing.LEFT
    assert harness.condition("Leaving")[:2] == ("True", "AwaitingTrim")
    assert harness.names() == ["orders-0-0", "orders-0-1", "orders-1-0", "orders-1-1"]
    assert harness.group.status.shards == 2
    assert harness.done(Delete) == []
    harness.belfast.trim()
    harness.settle()
    assert harness.names() == ["orders-0-0", "orders-0-1"]
    assert harness.volumes()[:2] == ["data-orders-0-0", "data-orders-0-1"]
    assert not [each for each in harness.volumes() if "orders-1" in each]
    assert harness.group.status.shards == 1
    assert harness.condition("Leaving")[:2] == ("False", "NoneLeaves")


def test_what_a_shard_holds_may_be_given_up() -> None:
    harness = BelfastHarness(shards={"leaving": {"waitFor": "Nothing"}})
    harness.settle()
    harness.edit(GROUP, shards=0)
    harness.settle()
    assert harness.names() == []
    assert harness.group.status.shards == 0
    assert harness.condition("WindowOpen")[:2] == ("False", "NoWindow")


def test_one_that_failed_on_its_way_out_is_admitted_again_and_keeps_its_records(
    harness: BelfastHarness,
) -> None:
    harness.edit(GROUP, shards=1)
    for _ in range(2):
        for name in ("orders-1-0", "orders-1-1"):
            harness.vanish(name)
            harness.frozen[harness.pod(name).uid] = None
        harness.step()
        harness.step()
        assert harness.standing("orders-1") is Standing.FAILED
    assert harness.condition("Leaving")[:2] == ("True", "AwaitingTrim")
    assert "orders-1 failed: trim the log to" in harness.condition("Leaving")[2]
    harness.frozen.clear()
    harness.settle()
    assert harness.standing("orders-1") is Standing.LEFT
    assert "orders-1 left: trim the log to" in harness.condition("Leaving")[2]
    assert harness.names()[-2:] == ["orders-1-0", "orders-1-1"]
    harness.ended()
    harness.edit(GROUP, image="newer")
    harness.settle()
    assert len(harness.ended()) == 4, "it keeps nobody from being rolled"
    harness.belfast.trim()
    harness.settle()
    assert harness.names() == ["orders-0-0", "orders-0-1"]


def test_nobody_leaves_while_the_sequencers_are_away(harness: BelfastHarness) -> None:
    for each in range(3):
        name = f"orders-sequencer-{each}"
        harness.frozen[harness.pod(name).uid] = None
        harness.crash(name)
    harness.step()
    harness.edit(GROUP, shards=1)
    harness.step()
    assert harness.done(LeaveShard, Delete) == []
    assert harness.condition("Leaving")[:2] == ("True", "SequencersAway")
    assert len(harness.names()) == 4


def test_a_shard_that_is_wanted_again_gets_another_seat(harness: BelfastHarness) -> None:
    harness.edit(GROUP, shards=1)
    harness.settle()
    assert harness.standing("orders-1") is Standing.LEFT
    harness.office.wait(60)
    assert harness.standing("orders-1") is Standing.LEFT
    harness.ended()
    harness.edit(GROUP, shards=2)
    harness.settle()
    assert [each.shard for each in harness.done(JoinShard)] == ["orders-1"]
    assert harness.ended() == []
    assert harness.standing("orders-1") is Standing.SEATED
    assert harness.condition("Ready")[:2] == ("True", "Seated")


def test_a_shard_that_was_taken_away_may_come_back_empty(harness: BelfastHarness) -> None:
    harness.edit(GROUP, shards=1)
    harness.settle()
    harness.belfast.trim()
    harness.settle()
    harness.edit(GROUP, shards=2)
    harness.settle()
    assert harness.names()[-2:] == ["orders-1-0", "orders-1-1"]
    assert harness.standing("orders-1") is Standing.SEATED


@pytest.mark.parametrize("storage", [VOLUME, {"ephemeral": True}])
def test_a_shard_whose_disks_are_new_comes_back_when_its_records_are_trimmed(
    storage: dict[str, Any],
) -> None:
    harness = BelfastHarness(shards={"storage": storage, "leaving": {"waitFor": "Nothing"}})
    harness.settle()
    harness.edit(GROUP, shards=1)
    harness.settle()
    assert harness.names() == ["orders-0-0", "orders-0-1"]
    assert not [each for each in harness.volumes() if "orders-1" in each]
    harness.edit(GROUP, shards=2)
    harness.settle()
    assert harness.standing("orders-1") is Standing.LEFT
    assert harness.group.status.pods == 2, "nobody counts on their disks"
    status, reason, message = harness.condition("Ready")
    assert (status, reason) == ("False", "Refused")
    assert "orders-1 can't join" in message
    assert "its disks are lost" in message
    harness.office.wait(1_200)
    harness.belfast.trim()
    harness.office.wait(600)
    harness.settle()
    assert harness.standing("orders-1") is Standing.SEATED
    assert harness.group.status.pods == 4
    assert harness.condition("Ready")[:2] == ("True", "Seated")


@pytest.mark.parametrize("seated", [False, True])
def test_what_the_log_was_not_known_to_have_admitted_ends_by_one_replica_first(
    harness: BelfastHarness, seated: bool
) -> None:
    """It may have been admitted since the log was asked: the harness judges deletions by that."""
    harness.edit(GROUP, shards=3)
    while seated and harness.standing("orders-2") is not Standing.SEATED:
        harness.tend()
        harness.run()
    harness.edit(GROUP, shards=2)
    harness.tend()
    assert harness.ended() == ["orders-2-1"]
    assert harness.condition("Leaving")[:2] == ("True", "Draining")
    harness.office.wait(LOOK_S + 1)
    if seated:
        assert [each.shard for each in harness.done(LeaveShard)] == ["orders-2"]
        harness.settle()
        assert harness.standing("orders-2") is Standing.LEFT
        harness.belfast.trim()
    else:
        assert harness.ended() == ["orders-2-0"]
    harness.settle()
    assert len(harness.names()) == 4
    assert harness.condition("Ready")[0] == "True"


def test_one_that_failed_and_is_given_up_ends_by_one_replica_first(harness: BelfastHarness) -> None:
    """It may have been admitted again since the log was asked."""
    harness.fail("orders-1")
    harness.frozen.clear()
    while not harness.belfast.counts_on("orders-1"):
        harness.tend()
        harness.run()
    harness.ended()
    harness.edit(GROUP, shards=1, leaving={"waitFor": "Nothing"})
    assert harness.ended() == ["orders-1-1"]
    harness.settle()
    assert harness.names() == ["orders-0-0", "orders-0-1"]


def test_its_volumes_go_when_the_log_was_asked_without_its_pods(harness: BelfastHarness) -> None:
    """Before they went it may have been admitted again, and a window may count on it."""
    harness.fail("orders-1")
    before = len(harness.volumes())
    harness.edit(GROUP, shards=1, leaving={"waitFor": "Nothing"})
    for name in ("orders-1-0", "orders-1-1"):
        harness.vanish(name)
    assert len(harness.volumes()) == before
    harness.settle()
    assert len(harness.volumes()) == before - 2


def test_a_shard_isnt_asked_back_while_a_replica_of_it_cant_serve(harness: BelfastHarness) -> None:
    harness.edit(GROUP, shards=1)
    harness.settle()
    harness.frozen[harness.pod("orders-1-1").uid] = None
    harness.crash("orders-1-1")
    harness.edit(GROUP, shards=2)
    assert harness.done(JoinShard) == []
    harness.frozen.clear()
    harness.settle()
    assert harness.standing("orders-1") is Standing.SEATED


def test_backups_are_rolled_before_their_primary_one_shard_after_the_other(
    harness: BelfastHarness,
) -> None:
    harness.edit(GROUP, image="newer")
    harness.settle()
    assert harness.ended() == ["orders-0-1", "orders-0-0", "orders-1-1", "orders-1-0"]
    assert harness.group.status.updated == 4
    assert harness.belfast.ledger.view == 0, "nobody failed"


def test_a_shard_of_one_copy_is_rolled_all_the_same() -> None:
    harness = BelfastHarness(shards={"copies": 1})
    harness.settle()
    harness.ended()
    harness.edit(GROUP, image="newer")
    harness.settle()
    assert harness.ended() == ["orders-0-0", "orders-1-0"]
    assert harness.group.status.seated == 2, "they failed, and have come back"


def test_a_bad_spec_breaks_one_replica_and_is_corrected(harness: BelfastHarness) -> None:
    harness.edit(GROUP, image=BAD)
    harness.settle()
    assert harness.ended() == ["orders-0-1"]
    assert harness.condition("RolloutBlocked")[:2] == ("True", "PodsFailing")
    assert harness.condition("Ready")[0] == "True"
    harness.edit(GROUP, image="newer")
    harness.settle()
    assert harness.group.status.updated == 4


def test_nothing_is_rolled_while_a_replica_does_not_count(harness: BelfastHarness) -> None:
    """Its pod was ready when it was last asked, and the log goes on without it."""
    lost = harness.pod("orders-1-1").uid
    harness.frozen[lost] = None
    run, ledger = harness.belfast.step, harness.belfast

    def without(sequencers: object, replicas: object) -> None:
        assert isinstance(replicas, dict)
        kept = {node: each for node, each in replicas.items() if each.life != lost}
        run(sequencers, kept)  # type: ignore[arg-type]

    ledger.step = without  # type: ignore[method-assign]
    harness.step()
    harness.edit(GROUP, image="newer")
    for _ in range(5):
        harness.step()
    assert harness.ended() == []
    assert harness.condition("RolloutBlocked")[:2] == ("True", "WaitingForCopies")
    assert "orders-1 runs without orders-1-1" in harness.condition("Degraded")[2]


def test_a_lost_primary_is_made_anew_and_seats_are_kept(harness: BelfastHarness) -> None:
    harness.vanish("orders-0-0")
    harness.run()
    harness.settle()
    assert harness.standing("orders-0") is Standing.SEATED
    assert harness.belfast.ledger.view == 0
    (shown, _) = harness.group.status.seats
    assert (shown.primary, shown.copies) == ("orders-0-1", 2)


def test_a_shard_that_failed_comes_back(harness: BelfastHarness) -> None:
    harness.fail("orders-1")
    assert harness.condition("Ready")[:2] == ("False", "ShardsFailed")
    harness.frozen.clear()
    harness.settle()
    assert harness.condition("Ready")[:2] == ("True", "Seated")


def test_a_replica_is_evicted_when_all_others_of_its_shard_count(harness: BelfastHarness) -> None:
    assert harness.evict("orders-0-0")
    assert not harness.evict("orders-0-1"), "the other copy is about to go"
    assert harness.evict("orders-1-0"), "another shard's"
    harness.vanish("orders-0-0")
    assert not harness.evict("orders-0-1"), "the other copy is missing"


def test_how_much_of_what_was_speculated_was_right(harness: BelfastHarness) -> None:
    assert harness.group.status.speculation is None
    harness.measure(orders_0_0=Vitals(confirmed=90), orders_1_0=Vitals(confirmed=100, voided=10))
    harness.office.wait(60)
    assert harness.group.status.speculation == 95


def test_on_disks_of_nodes_there_are_no_volumes() -> None:
    harness = BelfastHarness(shards={"storage": {"ephemeral": True}})
    harness.settle()
    assert [each for each in harness.volumes() if "sequencer" not in each] == []
    (data,) = (each for each in harness.pod("orders-0-0").spec["volumes"] if each["name"] == "data")
    assert data == {"name": "data", "emptyDir": {}}


Deed = tuple[str, int]
DEEDS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "scale",
                "image",
                "rules",
                "vanish",
                "evict",
                "trim",
                "step",
                "unseen",
                "restart",
                "crash",
            ]
        ),
        st.integers(0, 7),
    ),
    max_size=10,
)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(DEEDS)
def test_whatever_is_done_no_window_loses_what_it_counts_on(deeds: list[Deed]) -> None:
    """The harness judges every deletion by the log, and in the end all is as it was asked for."""
    harness = BelfastHarness()
    harness.settle()
    for deed, number in deeds:
        _do(harness, deed, number)
    harness.edit(GROUP, image="last", shards=2, storage=VOLUME)
    harness.edit(LOG, image="last")
    harness.settle(200)
    held = [each for each in ("orders-2", "orders-3") if harness.belfast.holds(each)]
    assert {f"{each}-{copy}" for each in held for copy in range(2)} <= set(harness.names())
    for _ in range(4):  # those that left before get their seats in the end
        harness.belfast.trim()
        harness.office.wait(60)
        harness.settle(200)
    status = harness.group.status
    assert (status.shards, status.seated, status.updated) == (2, 2, 4)
    assert harness.log.status.updated == 3
    assert harness.condition("Ready")[0] == "True"


def _do(harness: BelfastHarness, deed: str, number: int) -> None:
    names = harness.names("")
    match deed:
        case "scale":
            harness.edit(GROUP, shards=number % 4)
        case "image":
            harness.edit(GROUP, image=[BAD, "a", "b"][number % 3])
        case "rules":
            harness.edit(LOG, rules={"window": 50 + number})
        case "vanish":
            harness.vanish(names[number % len(names)])
        case "evict":
            harness.evict(names[number % len(names)])
        case "crash":
            harness.crash(names[number % len(names)])
        case "trim":
            harness.belfast.trim()
        case "unseen":  # by the operator
            for _ in range(number):
                harness.tend()
                harness.run()
        case "restart":
            harness.office.restart()
            harness.office.settle()
        case _:
            for _ in range(number):
                harness.step()
