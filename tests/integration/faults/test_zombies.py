"""Whoever slept while another took over writes nothing any more."""

from pathlib import Path

from tests.etcd_groups import client_of
from tests.integration.faults.load import Load
from tests.integration.faults.world import World, role
from tests.integration.pods.crew import Pod, start

from anabranch.shell.etcd.client import EtcdClient, prefix_end
from anabranch.shell.etcd.layout import Head, Keys, read_head

GROUPS = 60
"""The last of these is what a leader is about to write when it falls asleep."""
DROWSY = {"failpoints": f"journal.append.before=pause@{GROUPS}"}


def test_what_a_leader_was_about_to_write_when_it_fell_asleep_is_refused(
    tmp_path: Path, seed: int
) -> None:
    """It wakes beyond its lease, and goes on where it was: at the writing."""
    with World(tmp_path, metadata_0=DROWSY, metadata_1=DROWSY) as world:
        client = client_of(world.etcd.addresses)
        last = world.members[2]
        # It isn't drowsy: it shall not be the first to lead, but there if both others sleep.
        last.kill()
        with Load(world, seed, tmp_path) as load:
            load.until(lambda: any(map(stopped, world.members)), "a leader to fall asleep")
            (zombie,) = filter(stopped, world.members)
            start([last])
            wake(world, load, client, zombie)
            for also in filter(stopped, world.members):
                wake(world, load, client, also)
            load.check(appends_min=60)
        terms = [head.term for head in journaled(client, world.cluster)]
        client.close()
    assert terms == sorted(terms), "an earlier leader wrote behind a later one"
    assert len(set(terms)) >= 2


def wake(world: World, load: Load, client: EtcdClient, zombie: Pod) -> None:
    """When another leads."""
    load.go_on(20)
    assert stopped(zombie)
    zombie.resume()
    load.until(lambda: role(zombie) == "follower", "the zombie to step down")
    (lost,) = (line for line in zombie.lines if line["event"] == "the lead is lost")
    assert journaled(client, world.cluster)[-1].term > lost["term"]
    load.go_on(20)


def stopped(pod: Pod) -> bool:
    """Does it sleep, as after SIGSTOP?"""
    if not pod.running:
        return False
    state = Path(f"/proc/{pod.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    return state == "T"


def journaled(client: EtcdClient, cluster: str) -> list[Head]:
    """All groups, in the journal's order."""
    keys = Keys(cluster)
    found = client.range(keys.groups, prefix_end(keys.groups)).kvs
    return [read_head("etcd", keys.group_first(each.key), each.value) for each in found]
