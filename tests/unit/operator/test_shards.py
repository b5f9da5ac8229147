"""ShardGroups: shards join, leave before their pods go, and are rolled one replica at a time."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.operator.quay import BAD, GROUP, LOG, LOOK_S, VOLUME, Quay, environment, setting

from anabranch.apps.pods.belfast_settings import Durability, ShardSettings, load
from anabranch.core.belfast.ledger.ledger import Standing
from anabranch_operator.plan.engine.actions import Delete, JoinShard, LeaveShard
from anabranch_operator.plan.engine.events import Vitals


@pytest.fixture
def quay() -> Quay:
    """Three sequencers and two shards of two copies, at rest."""
    made = Quay()
    made.settle()
    made.office.done.clear()
    return made


def fail(quay: Quay) -> None:
    """The second shard as a whole; its pods stay as they are."""
    for name in ("orders-1-0", "orders-1-1"):
        quay.frozen[quay.pod(name).uid] = None
        quay.crash(name)
    quay.step()
    quay.step()
    assert quay.standing("orders-1") is Standing.FAILED


def test_shards_have_their_pods_and_get_their_seats(quay: Quay) -> None:
    assert quay.names() == ["orders-0-0", "orders-0-1", "orders-1-0", "orders-1-1"]
    status = quay.group.status
    assert (status.shards, status.desired, status.seated, status.pods) == (2, 2, 2, 4)
    assert status.selector == "anabranch.dev/role=shard,anabranch.dev/shards=orders"
    shown = [(each.name, each.standing, each.primary, each.copies) for each in status.seats]
    assert shown == [
        ("orders-0", "Seated", "orders-0-0", 2),
        ("orders-1", "Seated", "orders-1-0", 2),
    ]
    assert quay.condition("Ready")[:2] == ("True", "Seated")
    assert quay.condition("WindowOpen")[:2] == ("True", "WindowPublished")
    assert quay.condition("Joining")[:2] == ("False", "NoneJoins")
    assert quay.condition("Leaving")[:2] == ("False", "NoneLeaves")
    quay.office.wait(60)
    version = quay.kube.version
    quay.office.wait(7_200)
    assert quay.kube.version == version, "nothing moves, and nothing is written"


def test_a_replica_knows_its_shard_the_others_and_the_sequencers(quay: Quay) -> None:
    seen = quay.pod("orders-1-1")
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


def test_a_replica_understands_what_it_is_told() -> None:
    quay = Quay(shards={"quota": 7, "durability": "memory", "copies": 3})
    quay.settle()
    found = load(ShardSettings, {}, environment(quay.pod("orders-1-2")))
    assert found.address == found.replicas[2]
    assert (found.shard, found.quota, found.durability) == ("orders-1", 7, Durability.MEMORY)
    assert len(found.sequencers) == 3


def test_without_sequencers_there_is_nothing_to_join() -> None:
    quay = Quay(shards={"sequencers": "others"})
    quay.step()
    assert quay.names() == []
    assert quay.condition("Ready")[:2] == ("False", "SequencersMissing")


def test_a_shard_that_is_added_joins_until_a_window_holds_it(quay: Quay) -> None:
    quay.edit(GROUP, shards=3)
    assert quay.names()[-2:] == ["orders-2-0", "orders-2-1"]
    assert quay.condition("Joining")[:2] == ("True", "AwaitingSeats")
    assert quay.condition("Ready")[:2] == ("False", "AwaitingSeats")
    quay.settle()
    assert quay.standing("orders-2") is Standing.SEATED
    assert quay.condition("Joining")[0] == "False"
    assert quay.group.status.seated == 3


def test_a_shard_leaves_and_stays_until_its_records_are_trimmed(quay: Quay) -> None:
    quay.edit(GROUP, shards=1)
    assert [each.shard for each in quay.done(LeaveShard)] == ["orders-1"]
    assert quay.condition("Leaving")[:2] == ("True", "AwaitingBoundary")
    quay.settle()
    assert quay.standing("orders-1") is Standing.LEFT
    assert quay.condition("Leaving")[:2] == ("True", "AwaitingTrim")
    assert quay.names() == ["orders-0-0", "orders-0-1", "orders-1-0", "orders-1-1"]
    assert quay.group.status.shards == 2
    assert quay.done(Delete) == []
    quay.belfast.trim()
    quay.settle()
    assert quay.names() == ["orders-0-0", "orders-0-1"]
    assert quay.volumes()[:2] == ["data-orders-0-0", "data-orders-0-1"]
    assert not [each for each in quay.volumes() if "orders-1" in each]
    assert quay.group.status.shards == 1
    assert quay.condition("Leaving")[:2] == ("False", "NoneLeaves")


def test_what_a_shard_holds_may_be_given_up() -> None:
    quay = Quay(shards={"leaving": {"waitFor": "Nothing"}})
    quay.settle()
    quay.edit(GROUP, shards=0)
    quay.settle()
    assert quay.names() == []
    assert quay.group.status.shards == 0
    assert quay.condition("WindowOpen")[:2] == ("False", "NoWindow")


def test_one_that_failed_on_its_way_out_is_admitted_again_and_keeps_its_records(quay: Quay) -> None:
    quay.edit(GROUP, shards=1)
    for _ in range(2):
        for name in ("orders-1-0", "orders-1-1"):
            quay.vanish(name)
            quay.frozen[quay.pod(name).uid] = None
        quay.step()
        quay.step()
        assert quay.standing("orders-1") is Standing.FAILED
    assert quay.condition("Leaving")[:2] == ("True", "AwaitingTrim")
    assert "orders-1 failed: trim the log to" in quay.condition("Leaving")[2]
    quay.frozen.clear()
    quay.settle()
    assert quay.standing("orders-1") is Standing.LEFT
    assert "orders-1 left: trim the log to" in quay.condition("Leaving")[2]
    assert quay.names()[-2:] == ["orders-1-0", "orders-1-1"]
    quay.ended()
    quay.edit(GROUP, image="newer")
    quay.settle()
    assert len(quay.ended()) == 4, "it keeps nobody from being rolled"
    quay.belfast.trim()
    quay.settle()
    assert quay.names() == ["orders-0-0", "orders-0-1"]


def test_nobody_leaves_while_the_sequencers_are_away(quay: Quay) -> None:
    for each in range(3):
        name = f"orders-sequencer-{each}"
        quay.frozen[quay.pod(name).uid] = None
        quay.crash(name)
    quay.step()
    quay.edit(GROUP, shards=1)
    quay.step()
    assert quay.done(LeaveShard, Delete) == []
    assert quay.condition("Leaving")[:2] == ("True", "SequencersAway")
    assert len(quay.names()) == 4


def test_a_shard_that_is_wanted_again_gets_another_seat(quay: Quay) -> None:
    quay.edit(GROUP, shards=1)
    quay.settle()
    assert quay.standing("orders-1") is Standing.LEFT
    quay.office.wait(60)
    assert quay.standing("orders-1") is Standing.LEFT
    quay.ended()
    quay.edit(GROUP, shards=2)
    quay.settle()
    assert [each.shard for each in quay.done(JoinShard)] == ["orders-1"]
    assert quay.ended() == []
    assert quay.standing("orders-1") is Standing.SEATED
    assert quay.condition("Ready")[:2] == ("True", "Seated")


def test_a_shard_that_was_taken_away_may_come_back_empty(quay: Quay) -> None:
    quay.edit(GROUP, shards=1)
    quay.settle()
    quay.belfast.trim()
    quay.settle()
    quay.edit(GROUP, shards=2)
    quay.settle()
    assert quay.names()[-2:] == ["orders-1-0", "orders-1-1"]
    assert quay.standing("orders-1") is Standing.SEATED


@pytest.mark.parametrize("storage", [VOLUME, {"ephemeral": True}])
def test_a_shard_whose_disks_are_new_comes_back_when_its_records_are_trimmed(
    storage: dict[str, Any],
) -> None:
    quay = Quay(shards={"storage": storage, "leaving": {"waitFor": "Nothing"}})
    quay.settle()
    quay.edit(GROUP, shards=1)
    quay.settle()
    assert quay.names() == ["orders-0-0", "orders-0-1"]
    assert not [each for each in quay.volumes() if "orders-1" in each]
    quay.edit(GROUP, shards=2)
    quay.settle()
    assert quay.standing("orders-1") is Standing.LEFT
    assert quay.group.status.pods == 2, "nobody counts on their disks"
    status, reason, message = quay.condition("Ready")
    assert (status, reason) == ("False", "Refused")
    assert "orders-1 can't join" in message
    assert "its disks are lost" in message
    quay.office.wait(1_200)
    quay.belfast.trim()
    quay.office.wait(600)
    quay.settle()
    assert quay.standing("orders-1") is Standing.SEATED
    assert quay.group.status.pods == 4
    assert quay.condition("Ready")[:2] == ("True", "Seated")


@pytest.mark.parametrize("seated", [False, True])
def test_what_the_log_was_not_known_to_have_admitted_ends_by_one_replica_first(
    quay: Quay, seated: bool
) -> None:
    """It may have been admitted since the log was asked: the quay holds each end against that."""
    quay.edit(GROUP, shards=3)
    while seated and quay.standing("orders-2") is not Standing.SEATED:
        quay.tend()
        quay.run()
    quay.edit(GROUP, shards=2)
    quay.tend()
    assert quay.ended() == ["orders-2-1"]
    assert quay.condition("Leaving")[:2] == ("True", "Draining")
    quay.office.wait(LOOK_S + 1)
    if seated:
        assert [each.shard for each in quay.done(LeaveShard)] == ["orders-2"]
        quay.settle()
        assert quay.standing("orders-2") is Standing.LEFT
        quay.belfast.trim()
    else:
        assert quay.ended() == ["orders-2-0"]
    quay.settle()
    assert len(quay.names()) == 4
    assert quay.condition("Ready")[0] == "True"


def test_one_that_failed_and_is_given_up_ends_by_one_replica_first(quay: Quay) -> None:
    """It may have been admitted again since the log was asked."""
    fail(quay)
    quay.frozen.clear()
    while not quay.belfast.counts_on("orders-1"):
        quay.tend()
        quay.run()
    quay.ended()
    quay.edit(GROUP, shards=1, leaving={"waitFor": "Nothing"})
    assert quay.ended() == ["orders-1-1"]
    quay.settle()
    assert quay.names() == ["orders-0-0", "orders-0-1"]


def test_its_volumes_go_when_the_log_was_asked_without_its_pods(quay: Quay) -> None:
    """Before they went it may have been admitted again, and a window may count on it."""
    fail(quay)
    before = len(quay.volumes())
    quay.edit(GROUP, shards=1, leaving={"waitFor": "Nothing"})
    for name in ("orders-1-0", "orders-1-1"):
        quay.vanish(name)
    assert len(quay.volumes()) == before
    quay.settle()
    assert len(quay.volumes()) == before - 2


def replace_group(quay: Quay, **spec: Any) -> None:
    """The group is deleted, and declared anew before its pods are collected."""
    quay.kube.collects = False
    quay.kube.delete(GROUP)
    quay.declare(**spec)
    quay.office.wait(LOOK_S + 1)


@pytest.mark.parametrize("left", [True, False])
def test_volumes_stay_while_pods_of_a_deleted_group_use_them(quay: Quay, *, left: bool) -> None:
    if left:
        quay.edit(GROUP, shards=1)
        quay.settle()
        quay.belfast.trim()
        quay.office.done.clear()
    else:
        fail(quay)
    replace_group(quay, shards=1, leaving={"waitFor": "Nothing"})
    assert "orders-1-0" in quay.names()
    assert "data-orders-1-0" in quay.volumes()
    assert quay.done(Delete) == []
    quay.frozen.clear()
    quay.kube.collect()
    quay.settle()
    assert quay.names() == ["orders-0-0", "orders-0-1"]
    assert not [each for each in quay.volumes() if "orders-1" in each]


def test_replicas_of_a_deleted_group_are_not_evicted_at_once(quay: Quay) -> None:
    replace_group(quay)
    assert not quay.evict("orders-0-0"), "a window counts on it, and no replica is the new group's"
    assert not quay.evict("orders-0-1")
    quay.kube.collect()
    quay.settle()
    assert quay.evict("orders-0-0")
    assert not quay.evict("orders-0-1")


def test_a_group_of_a_name_that_was_there_before_gets_its_seats(quay: Quay) -> None:
    quay.edit(GROUP, shards=0)
    quay.settle()
    quay.belfast.trim()
    quay.settle()
    quay.kube.delete(GROUP)
    quay.settle()
    quay.declare()
    quay.settle()
    assert quay.group.status.seated == 2
    assert quay.condition("Ready")[:2] == ("True", "Seated")


def test_a_shard_isnt_asked_back_while_a_replica_of_it_cant_serve(quay: Quay) -> None:
    quay.edit(GROUP, shards=1)
    quay.settle()
    quay.frozen[quay.pod("orders-1-1").uid] = None
    quay.crash("orders-1-1")
    quay.edit(GROUP, shards=2)
    assert quay.done(JoinShard) == []
    quay.frozen.clear()
    quay.settle()
    assert quay.standing("orders-1") is Standing.SEATED


def test_backups_are_rolled_before_their_primary_one_shard_after_the_other(quay: Quay) -> None:
    quay.edit(GROUP, image="newer")
    quay.settle()
    assert quay.ended() == ["orders-0-1", "orders-0-0", "orders-1-1", "orders-1-0"]
    assert quay.group.status.updated == 4
    assert quay.belfast.ledger.view == 0, "nobody failed"


def test_a_shard_of_one_copy_is_rolled_all_the_same() -> None:
    quay = Quay(shards={"copies": 1})
    quay.settle()
    quay.ended()
    quay.edit(GROUP, image="newer")
    quay.settle()
    assert quay.ended() == ["orders-0-0", "orders-1-0"]
    assert quay.group.status.seated == 2, "they failed, and have come back"


def test_a_bad_spec_breaks_one_replica_and_is_corrected(quay: Quay) -> None:
    quay.edit(GROUP, image=BAD)
    quay.settle()
    assert quay.ended() == ["orders-0-1"]
    assert quay.condition("RolloutBlocked")[:2] == ("True", "PodsFailing")
    assert quay.condition("Ready")[0] == "True"
    quay.edit(GROUP, image="newer")
    quay.settle()
    assert quay.group.status.updated == 4


def test_nothing_is_rolled_while_a_replica_does_not_count(quay: Quay) -> None:
    """Its pod was ready when it was last asked, and the log goes on without it."""
    lost = quay.pod("orders-1-1").uid
    quay.frozen[lost] = None
    run, ledger = quay.belfast.step, quay.belfast

    def without(sequencers: object, replicas: object) -> None:
        assert isinstance(replicas, dict)
        kept = {node: each for node, each in replicas.items() if each.life != lost}
        run(sequencers, kept)  # type: ignore[arg-type]

    ledger.step = without  # type: ignore[method-assign]
    quay.step()
    quay.edit(GROUP, image="newer")
    for _ in range(5):
        quay.step()
    assert quay.ended() == []
    assert quay.condition("RolloutBlocked")[:2] == ("True", "WaitingForCopies")
    assert "orders-1 goes on without orders-1-1" in quay.condition("Degraded")[2]


def test_a_lost_primary_is_made_anew_and_seats_are_kept(quay: Quay) -> None:
    quay.vanish("orders-0-0")
    quay.run()
    quay.settle()
    assert quay.standing("orders-0") is Standing.SEATED
    assert quay.belfast.ledger.view == 0
    (shown, _) = quay.group.status.seats
    assert (shown.primary, shown.copies) == ("orders-0-1", 2)


def test_a_shard_that_failed_comes_back(quay: Quay) -> None:
    fail(quay)
    assert quay.condition("Ready")[:2] == ("False", "ShardsFailed")
    quay.frozen.clear()
    quay.settle()
    assert quay.condition("Ready")[:2] == ("True", "Seated")


def test_a_replica_is_evicted_when_all_others_of_its_shard_count(quay: Quay) -> None:
    assert quay.evict("orders-0-0")
    assert not quay.evict("orders-0-1"), "the other copy is about to go"
    assert quay.evict("orders-1-0"), "another shard's"
    quay.vanish("orders-0-0")
    assert not quay.evict("orders-0-1"), "the other copy is missing"


def test_how_much_of_what_was_speculated_was_right(quay: Quay) -> None:
    assert quay.group.status.speculation is None
    quay.measure(orders_0_0=Vitals(confirmed=90), orders_1_0=Vitals(confirmed=100, voided=10))
    quay.office.wait(60)
    assert quay.group.status.speculation == 95


def test_on_disks_of_nodes_there_are_no_volumes() -> None:
    quay = Quay(shards={"storage": {"ephemeral": True}})
    quay.settle()
    assert [each for each in quay.volumes() if "sequencer" not in each] == []
    (data,) = (each for each in quay.pod("orders-0-0").spec["volumes"] if each["name"] == "data")
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
    """The quay holds every deletion against the log; and in the end all is as it was asked for."""
    quay = Quay()
    quay.settle()
    for deed, number in deeds:
        _do(quay, deed, number)
    quay.edit(GROUP, image="last", shards=2, storage=VOLUME)
    quay.edit(LOG, image="last")
    quay.settle(200)
    held = [each for each in ("orders-2", "orders-3") if quay.belfast.holds(each)]
    assert {f"{each}-{copy}" for each in held for copy in range(2)} <= set(quay.names())
    for _ in range(4):  # those that left before get their seats in the end
        quay.belfast.trim()
        quay.office.wait(60)
        quay.settle(200)
    status = quay.group.status
    assert (status.shards, status.seated, status.updated) == (2, 2, 4)
    assert quay.log.status.updated == 3
    assert quay.condition("Ready")[0] == "True"


def _do(quay: Quay, deed: str, number: int) -> None:
    names = quay.names("")
    match deed:
        case "scale":
            quay.edit(GROUP, shards=number % 4)
        case "image":
            quay.edit(GROUP, image=[BAD, "a", "b"][number % 3])
        case "rules":
            quay.edit(LOG, rules={"window": 50 + number})
        case "vanish":
            quay.vanish(names[number % len(names)])
        case "evict":
            quay.evict(names[number % len(names)])
        case "crash":
            quay.crash(names[number % len(names)])
        case "trim":
            quay.belfast.trim()
        case "unseen":  # by the operator
            for _ in range(number):
                quay.tend()
                quay.run()
        case "restart":
            quay.office.restart()
            quay.office.settle()
        case _:
            for _ in range(number):
                quay.step()
