"""A Belfast log beside the release: shards come and go, replicas and sequencers are replaced and
killed, while somebody appends; what was acknowledged is read, once and in order.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.account import Account
from tests.cluster.log_pods import WITHIN_S, LogPods
from tests.cluster.site import Document, Site, kill, until
from tests.cluster.ticks import LOG, Ticks, declared
from tests.kubernetes.api_server import Refused

from anabranch_operator.api import names


@pytest.fixture(scope="module")
def crew(site: Site, account: Account, root: Path) -> LogPods:
    """Three sequencers, two shards of two replicas."""
    with account.step("a SequencerSet and a ShardGroup are applied, until all have seats"):
        site.apply(*declared(site, root))
        site.until_is("sequencersets", LOG, "Ready")
        site.until_is("shardgroups", LOG, "Ready")
    crew = LogPods(site, LOG)
    crew.until_whole()
    return crew


@pytest.fixture(scope="module")
def ticks(site: Site, crew: LogPods) -> Iterator[Ticks]:
    ticks = Ticks(site)
    yield ticks
    ticks.end()


def test_who_asks_is_told_how_the_log_is(site: Site, crew: LogPods, ticks: Ticks) -> None:
    until(lambda: (crew.group.get("window") or 0) > 0, "a window is over")
    until(lambda: crew.group.get("speculation") is not None, "something was foretold")
    (found,) = site.kubectl("get", "seq", "--no-headers").splitlines()
    name, leader, _, members, stable, ready, _ = found.split()
    assert (name, members, ready) == (LOG, "3", "True")
    assert leader in crew.pods(names.SEQUENCER)
    assert int(stable) > 0
    (found,) = site.kubectl("get", "sg", "--no-headers").splitlines()
    name, shards, desired, window, speculation, ready, _ = found.split()
    assert (name, shards, desired, ready) == (LOG, "2", "2", "True")
    assert int(window) > 0
    assert 0 <= int(speculation) <= 100
    assert crew.members["endpoint"].startswith("belfasts://")
    ticks.go_on()


def test_shards_are_added_and_have_their_seats(
    site: Site, account: Account, crew: LogPods, ticks: Ticks
) -> None:
    with account.step("kubectl scale of two shards to three, until it has a seat"):
        site.kubectl("scale", f"shardgroup/{LOG}", "--replicas=3")
        site.until_is("shardgroups", LOG, "Joining", status="False")
    assert crew.group["seated"] == 3
    crew.until_whole()
    ticks.go_on()


def test_replicas_are_rolled_and_nobody_fails(
    site: Site, account: Account, crew: LogPods, ticks: Ticks
) -> None:
    view, before = crew.members["view"], crew.uids(names.SHARD)
    with account.step("roll-out of six replicas"):
        site.patch("shardgroups", LOG, podAnnotations={"rolled": "once"})
        crew.until_whole()
    after = crew.uids(names.SHARD)
    assert len(after) == 6
    assert not before & after
    ticks.go_on()
    assert crew.members["view"] == view


def test_sequencers_are_rolled_the_leader_last(
    site: Site, account: Account, crew: LogPods, ticks: Ticks
) -> None:
    members = crew.members
    view, before = members["view"], crew.uids(names.SEQUENCER)
    with account.step("roll-out of three sequencers"):
        site.patch("sequencersets", LOG, podAnnotations={"rolled": "once"})
        until(lambda: crew.members.get("observedGeneration") == 2, "the operator has seen it")
        crew.until_whole()
    assert not before & crew.uids(names.SEQUENCER)
    made = {name: each["creationTimestamp"] for name, each in crew.pods(names.SEQUENCER).items()}
    if crew.members["term"] == members["term"] + 1:
        # It led until it was told to go: nobody was elected in between.
        assert made[members["leader"]] == max(made.values())
    ticks.go_on()
    assert crew.members["view"] == view


def test_sequencers_that_are_killed_are_succeeded(
    site: Site, account: Account, crew: LogPods, ticks: Ticks
) -> None:
    members = crew.members
    with account.step("kill -9 of the sequencer that leads, until somebody leads"):
        kill(site.get("pods", members["leader"]))
        until(lambda: (crew.members.get("term") or 0) > members["term"], "somebody leads")
        ticks.go_on()
    crew.until_whole()
    until(lambda: ticks.term() > members["term"], "etcd is told of it")


def test_a_primary_that_is_killed_comes_back(
    site: Site, account: Account, crew: LogPods, ticks: Ticks
) -> None:
    (seat, *_) = crew.group["seats"]
    with account.step("kill -9 of a shard's primary, until both replicas count"):
        kill(site.get("pods", seat["primary"]))
        ticks.go_on()
        crew.until_whole()


def test_a_primary_that_is_deleted_by_force_is_met_where_it_comes_back(
    site: Site, account: Account, crew: LogPods, ticks: Ticks
) -> None:
    """Its name leads to where it was for as long as the cluster's DNS keeps its answers."""
    (seat, *_) = crew.group["seats"]
    view = crew.members["view"]
    with account.step("deletion by force of a shard's primary, until its shard takes appends"):
        site.kubectl("delete", "pod", "--force", "--grace-period=0", seat["primary"])
        ticks.ask("append", "--shard", seat["name"], "asked")
    crew.until_whole()
    ticks.go_on()
    assert crew.members["view"] == view


def test_a_primary_that_stays_away_is_succeeded(
    account: Account, crew: LogPods, ticks: Ticks
) -> None:
    (seat, *_) = crew.group["seats"]
    view, primary = crew.members["view"], seat["primary"]
    what = "deletion of a shard's primary, until its backup takes appends"
    with crew.away(primary), account.step(what):
        until(lambda: not _primary(ticks, seat["name"]).startswith(f"{primary}."), "it has one")
        ticks.ask("append", "--shard", seat["name"], "asked")
    crew.until_whole()
    ticks.go_on()
    assert crew.members["view"] == view


def test_a_shard_that_stays_away_fails_once_and_comes_back(
    account: Account, crew: LogPods, ticks: Ticks
) -> None:
    view, failures = crew.members["view"], ticks.failures()
    what = "deletion of both replicas of a shard, until appends go on without it"
    with crew.away(f"{LOG}-1-0", f"{LOG}-1-1"), account.step(what):
        until(lambda: crew.members["view"] == view + 1, "it has failed")
        ticks.go_on()
    with account.step("the same shard's way back to its seat"):
        crew.until_whole()
    ticks.go_on()
    assert crew.members["view"] == view + 1
    # Who had nothing yet but what was certain isn't told.
    assert ticks.failures() <= failures + 1


def test_a_shard_leaves_and_goes_when_it_is_trimmed(
    site: Site, account: Account, crew: LogPods, ticks: Ticks
) -> None:
    with account.step("kubectl scale of three shards to two, until the third has left"):
        site.kubectl("scale", f"shardgroup/{LOG}", "--replicas=2")
        until(lambda: crew.seat(f"{LOG}-2")["standing"] == "Left", "it has left", WITHIN_S)
    ticks.go_on()
    assert f"{LOG}-2-0" in crew.pods(names.SHARD), "its records are kept"
    site.until_is("shardgroups", LOG, "Leaving")
    # The status may be older than the third shard's last window; this append isn't.
    last = max(position for position, _ in ticks.acknowledged().values())
    until(lambda: max(ticks.read()) >= last, "what is trimmed was read")
    with account.step("trim of the log, until the third shard's pods and volumes are gone"):
        ticks.ask("trim", str(last))
        for copy in range(2):
            site.until_gone("pods", f"{LOG}-2-{copy}")
            site.until_gone("persistentvolumeclaims", f"data-{LOG}-2-{copy}")
    crew.until_whole()


def test_a_shard_that_leaves_may_come_back(
    site: Site, account: Account, crew: LogPods, ticks: Ticks
) -> None:
    site.kubectl("scale", f"shardgroup/{LOG}", "--replicas=1")
    until(lambda: crew.seat(f"{LOG}-1")["standing"] == "Left", "it has left", WITHIN_S)
    pods = crew.uids(names.SHARD)
    with account.step("kubectl scale back to a shard that had left, until it has a seat"):
        site.kubectl("scale", f"shardgroup/{LOG}", "--replicas=2")
        crew.until_whole()
    assert crew.uids(names.SHARD) == pods, "it comes back without a restart"
    ticks.ask("append", "--shard", f"{LOG}-1", "asked")
    ticks.go_on()


def test_every_acknowledged_tick_is_read_once_and_in_order(
    account: Account, crew: LogPods, ticks: Ticks
) -> None:
    found = ticks.end_appends()
    assert list(found) == list(range(len(found)))
    places = {position: number for number, (position, _) in found.items()}
    assert list(places) == sorted(places), "a later one is further ahead"
    assert len(places) == len(found)
    last = max(places)
    until(lambda: max(ticks.read()) >= last, "the last one is read")
    read = {place: value for place, value in ticks.read().items() if value.startswith("tick ")}
    assert {place: read.get(place) for place in places} == {
        place: f"tick {number}" for place, number in places.items()
    }
    others = [
        int(value.removeprefix("tick ")) for place, value in read.items() if place not in places
    ]
    # What a failed shard couldn't answer for was appended again, and nothing else.
    again = [number for number in others if number < len(found)]
    assert len(again) <= crew.members["view"]
    account.heed([at for _, at in found.values()])


def test_what_is_deleted_leaves_nothing(
    site: Site, account: Account, crew: LogPods, ticks: Ticks
) -> None:
    with pytest.raises(Refused, match="have seats"):
        site.delete("shardgroups", LOG)
    with account.step("kubectl scale to no shard, and deletion, until nothing is left"):
        site.patch("shardgroups", LOG, shards=0, leaving={"waitFor": "Nothing"})
        until(lambda: not crew.pods(names.SHARD), "all shards have left", WITHIN_S)
        until(lambda: not crew.group.get("seated"), "nobody has a seat")
        for plural in ("shardgroups", "sequencersets"):
            site.delete(plural, LOG)
        until(lambda: not _left(site), "all that was made for it is gone")


def _primary(ticks: Ticks, shard: str) -> str:
    found = json.loads(ticks.ask("status", "-o", "json"))
    return next(each["primary"] for each in found["shards"] if each["name"] == shard)


def _left(site: Site) -> list[Document]:
    """What bears the log's labels."""
    kinds = ("pods", "services", "persistentvolumeclaims", "poddisruptionbudgets")
    labels = {names.SEQUENCERS_LABEL: LOG}, {names.SHARDS_LABEL: LOG}
    return [each for kind in kinds for label in labels for each in site.all(kind, **label)]
