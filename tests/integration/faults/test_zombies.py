"""Who slept while another took over writes nothing any more."""

from pathlib import Path

from tests.etcd_groups import client_of
from tests.integration.faults.load import Load
from tests.integration.faults.world import World
from tests.integration.pods.crew import Pod, start

from anabranch.shell.etcd.api.client import EtcdClient, prefix_end
from anabranch.shell.etcd.group.layout import Head, Keys, read_head

GROUPS = 60
"""The last of these is what the leader is about to write when it falls asleep."""
DROWSY = {"failpoints": f"journal.append.before=pause@{GROUPS}"}
SETTINGS = {"lease_s": 2}
"""It sleeps for longer, however soon another leads."""
LOST = "the lead is lost"


def test_what_a_leader_was_about_to_write_when_it_fell_asleep_is_refused(
    tmp_path: Path, seed: int
) -> None:
    """It wakes beyond its lease, and goes on where it was: at the writing."""
    with (
        World(tmp_path, members=2, brokers=1, settings=SETTINGS, metadata_0=DROWSY) as world,
        Load(world, seed, tmp_path) as load,
    ):
        drowsy, *others = world.members
        lull(load, drowsy, others)
        load.until(lambda: any(map(leads, others)), "another to lead")
        load.go_on(20)
        client = client_of(world.etcd.addresses)
        before = journaled(client, world.cluster)
        assert stopped(drowsy)
        drowsy.resume()
        load.until(lambda: not leads(drowsy), "the zombie to step down")
        load.go_on(20)
        after = journaled(client, world.cluster)
        client.close()
        assert after[: len(before)] == before
        term = next(line["term"] for line in reversed(drowsy.lines) if line["event"] == LOST)
        assert all(term < head.term for head in after[len(before) :])
        load.check(appends_min=60)


def lull(load: Load, drowsy: Pod, others: list[Pod]) -> None:
    """Have it lead, until it sleeps: again, if it loses the lead by itself."""
    while not stopped(drowsy):
        for each in others:
            each.kill()
        load.until(lambda: stopped(drowsy) or leads(drowsy), "it to lead")
        start(others)
        load.until(lambda: stopped(drowsy) or any(map(leads, others)), "it to fall asleep")


def leads(member: Pod) -> bool:
    """As far as it has told its log: a probe would wait for one that sleeps."""
    if not member.running:
        return False
    told = [line["event"] for line in member.lines if line["event"] in {"leading", LOST}]
    return told[-1:] == ["leading"]


def stopped(pod: Pod) -> bool:
    """Does it sleep, as after SIGSTOP?"""
    state = Path(f"/proc/{pod.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    return state == "T"


def journaled(client: EtcdClient, cluster: str) -> list[Head]:
    """All groups, in the journal's order."""
    keys = Keys(cluster)
    found = client.range(keys.groups, prefix_end(keys.groups)).kvs
    return [read_head("etcd", keys.group_first(each.key), each.value) for each in found]
