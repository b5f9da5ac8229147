"""What the simulator's disk, network and store promise, so that what they break is what we mean."""

from contextlib import suppress
from typing import Any

import pytest

from anabranch.core.errors import (
    AnabranchError,
    JournalCorrupt,
    ObjectExists,
    StorageFailed,
    StorageFull,
    Unavailable,
)
from anabranch.core.erwin.invariants.witness import Witness
from anabranch.core.sequencing.protocol.messages import Directory, Locate
from anabranch.core.types import MS
from anabranch.shell.journal.file_journal import FileJournal
from anabranch_sim.erwin.deployment import ErwinDeployment
from anabranch_sim.erwin.line import PATIENCE, Line
from anabranch_sim.erwin.options import Options
from anabranch_sim.world.disk import DiskFaults, PowerCut, SimDisk
from anabranch_sim.world.events import SECOND, World
from anabranch_sim.world.network import Network, NetworkFaults, Pipe
from anabranch_sim.world.store import SimStore, StoreFaults


def disk(seed: int, **faults: float) -> SimDisk:
    made = SimDisk(World(seed), "/disk")
    made.faults = DiskFaults(**faults)  # pyright: ignore[reportArgumentType]
    return made


def journal(on: SimDisk) -> FileJournal:
    return FileJournal(on, "sim", segment_bytes=4_096, ahead_bytes=512)


def test_what_was_synced_survives_a_power_cut_and_what_was_not_may_be_lost() -> None:
    kept: set[bytes] = set()
    for seed in range(50):
        one = disk(seed)
        file = one.create("f")
        file.write(b"synced", 0)
        file.sync()
        one.sync()
        file.write(b"UNSURE", 0)
        one.cut_power()
        kept.add(one.read("f"))
    assert kept == {b"synced", b"UNSURE"}


def test_a_name_that_was_not_synced_may_be_lost_and_a_renamed_one_is_never_both() -> None:
    seen: set[tuple[str, ...]] = set()
    for seed in range(50):
        one = disk(seed)
        one.create("old").sync()
        one.sync()
        one.rename("old", "new")
        one.create("another")
        one.cut_power()
        seen.add(tuple(one.names()))
    assert seen == {("old",), ("new",), ("another", "new")}


def test_a_torn_write_keeps_whole_sectors() -> None:
    sizes: set[int] = set()
    for seed in range(100):
        one = disk(seed)
        file = one.create("f")
        one.sync()
        file.write(b"x" * 2_048, 0)
        one.cut_power()
        sizes.add(len(one.read("f")))
    assert sizes == {0, 512, 1_024, 1_536, 2_048}


def test_after_a_failed_sync_the_next_one_succeeds_without_having_written() -> None:
    lost = 0
    for seed in range(50):
        one = disk(seed, sync_fails=1.0)
        file = one.create("f")
        one.sync()
        file.write(b"written", 0)
        with pytest.raises(StorageFailed):
            file.sync()
        one.faults = DiskFaults()
        file.sync()
        assert one.read("f") == b"written", "the page cache has it"
        one.cut_power()
        lost += one.read("f") != b"written"
    assert 0 < lost < 50


def test_a_killed_process_leaves_the_page_cache_and_no_open_file() -> None:
    one = disk(1)
    file = one.create("f")
    file.write(b"written", 0)
    one.kill()
    assert one.read("f") == b"written"
    with pytest.raises(PowerCut):
        file.write(b"a ghost", 0)


def test_a_full_disk_takes_what_it_has_room_for_and_says_so() -> None:
    one = disk(1, bytes_max=10)
    file = one.create("f")
    file.write(b"12345678", 0)
    with pytest.raises(StorageFull):
        file.write(b"abcd", 8)
    assert one.read("f") == b"12345678ab"
    file.write(b"87654321", 0)


def test_the_power_can_go_in_the_midst_of_any_operation_and_nothing_acknowledged_is_lost() -> None:
    for operations in range(40):
        one = disk(operations)
        one.dies_in = operations
        acknowledged: list[bytes] = []
        with suppress(PowerCut):
            writer = journal(one)
            writer.recover()
            for n in range(6):
                writer.append([b"%d" % n])
                acknowledged.append(b"%d" % n)
        one.cut_power()
        found = journal(one).recover().entries
        assert found[: len(acknowledged)] == acknowledged
        assert len(found) <= len(acknowledged) + 1


def test_a_start_that_loses_its_power_in_the_midst_loses_nothing_acknowledged() -> None:
    acknowledged = [b"%d" % n for n in range(3)]
    for seed in range(200):
        one = disk(seed, flips=1.0)
        writer = journal(one)
        writer.recover()
        for entry in acknowledged:
            writer.append([entry])
        for operations in (seed % 20, seed // 20):
            one.cut_power()
            one.dies_in = operations
            with suppress(PowerCut):
                journal(one).recover()
        one.cut_power()
        assert journal(one).recover().entries == acknowledged


def test_damage_to_what_was_durable_is_refused_and_nothing_is_guessed() -> None:
    one = disk(1)
    writer = journal(one)
    writer.recover()
    for n in range(5):
        writer.append([b"entry %d" % n])
    writer.close()
    segment = one.names()[0]
    one.spoil(segment, 140)
    with pytest.raises(JournalCorrupt, match=segment):
        journal(one).recover()


def test_a_connection_delivers_in_order_and_a_network_of_datagrams_does_not() -> None:
    world = World(3)
    network = Network(world, NetworkFaults(delay=10 * MS, tail=0.3, loss=0.2, duplicate=0.2))
    pipe = Pipe(network, "a", "b", lambda _: None)
    streamed: list[int] = []
    scattered: list[int] = []
    for n in range(100):
        pipe.carry(lambda n=n: streamed.append(n))
        network.carry("a", "b", lambda n=n: scattered.append(n))
    world.run(100 * SECOND)
    assert streamed == list(range(100))
    assert scattered != sorted(scattered)
    assert len(set(scattered)) < 100 < len(scattered) + network.dropped


def test_all_that_a_slow_node_says_or_hears_comes_late_and_only_that() -> None:
    world = World(3)
    network = Network(world, NetworkFaults())
    network.slow("b", SECOND)
    arrived: list[tuple[str, bool]] = []

    def carry(sender: str, receiver: str) -> None:
        def arrive() -> None:
            arrived.append((sender + receiver, world.now >= SECOND))

        network.carry(sender, receiver, arrive)
        Pipe(network, sender, receiver, lambda _: None).carry(arrive)

    for ends in ("ab", "ba", "ac"):
        carry(*ends)
    world.run(2 * SECOND)
    assert sorted(arrived) == [("ab", True)] * 2 + [("ac", False)] * 2 + [("ba", True)] * 2


def test_a_client_waits_for_a_slow_node_as_long_when_it_has_just_connected() -> None:
    """Connecting takes one round trip, and the answer another."""
    world = World(3)
    deployment = ErwinDeployment(world, Options.of(3), Witness())
    deployment.start()
    world.run(SECOND)
    node = deployment.sequencers[0]
    deployment.network.slow(node, PATIENCE // 3)
    answers: list[Any] = []
    Line(deployment, "client", node).ask(Locate(), answers.append)
    world.run(world.now + 2 * PATIENCE)
    assert [type(answer) for answer in answers] == [Directory]


def test_a_cut_goes_one_way_and_breaks_the_connections_that_use_it() -> None:
    world = World(3)
    network = Network(world, NetworkFaults())
    broken: list[str] = []
    there = Pipe(network, "a", "b", broken.append)
    back = Pipe(network, "b", "a", broken.append)
    arrived: list[str] = []
    network.cut("a", "b")
    back.carry(lambda: arrived.append("back"))
    there.carry(lambda: arrived.append("there"))
    world.run(SECOND)
    assert arrived == ["back"]
    assert broken == ["the network is cut"]


def test_a_store_may_say_that_it_failed_when_it_did_not_and_never_overwrites() -> None:
    world = World(3)
    store = SimStore(world)
    told: list[AnabranchError | bytes | None] = []
    store.faults = StoreFaults(lies=1.0)
    store.put("o", [b"a", b"b"], told.append)
    world.run(SECOND)
    store.heal()
    store.put("o", [b"other"], told.append)
    store.get("o", 1, 1, told.append)
    world.run(2 * SECOND)
    assert isinstance(told[0], Unavailable)
    assert store.objects == {"o": b"ab"}
    assert sorted(map(type, told[1:]), key=str) == sorted([ObjectExists, bytes], key=str)
