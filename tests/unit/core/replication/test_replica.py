"""The replicas of a shard keep one log, whatever falls (ADR 0028)."""

from collections.abc import Callable
from functools import partial

import pytest
from tests.unit.core.replication.replica import PATIENCE, Replica
from tests.unit.core.replication.replicas import World

from anabranch.core.belfast.protocol.letters import Learn, Seal, Sealed
from anabranch.core.machine import Send
from anabranch.core.replication.entries import Item
from anabranch.core.replication.letters import Copy, Match, Stored
from anabranch.core.replication.replica import Role
from anabranch.core.types import MS

ABC = ("a", "b", "c")


class Stage:
    """Replicas on a network without faults; disks write when they are told to."""

    def __init__(self, *nodes: str, cache_bytes: int = 1 << 20) -> None:
        self.letters: list[tuple[str, Send]] = []
        self.said: list[object] = []
        self.replicas = {node: Replica(node, nodes, self._post, cache_bytes) for node in nodes}
        self.now = 0
        for replica in self.replicas.values():
            replica.start(0)

    def __getitem__(self, node: str) -> Replica:
        return self.replicas[node]

    def arrange(
        self, epoch: int, primary: str, *replicas: str, disks: tuple[int, ...] = (), begins: int = 0
    ) -> None:
        told = (disks, begins)
        for node, replica in self.replicas.items():
            if replica.up:
                arrange = replica.copies.arrange
                replica.do(partial(arrange, epoch, primary, replicas, node, *told))

    def disks(self, *nodes: str) -> tuple[int, ...]:
        return tuple(self[node].copies.disk for node in nodes)

    def wipe(self, node: str) -> None:
        """It falls, and is there again with an empty disk."""
        self[node].fall(kept=False)
        self[node].wipe()
        self.now += MS
        self[node].start(self.now)
        self[node].settle()

    def deliver(self) -> None:
        while self.letters:
            sender, send = self.letters.pop(0)
            replica = self.replicas.get(send.to)
            if replica is None:
                self.said.append(send.message)
            elif replica.up:
                take = partial(replica.copies.received, sender, send.message)
                replica.do(take)

    def rest(self, *nodes: str) -> None:
        """Disks write, and letters arrive, until there is nothing to do."""
        self.deliver()
        while any(
            self[node].group is not None and self[node].up for node in nodes or self.replicas
        ):
            for node in nodes or self.replicas:
                if self[node].up and self[node].group is not None:
                    self[node].write()
            self.deliver()

    def wait(self, span: int) -> None:
        """In small steps, at rest."""
        for _ in range(span // MS):
            self.now += MS
            for replica in self.replicas.values():
                if replica.up:
                    replica.pass_time(self.now)
            self.rest()

    def append(self, node: str, *batches: bytes) -> None:
        copies = self[node].copies

        def append() -> None:
            for batch in batches:
                copies.append(batch, 1)

        self[node].do(append)

    def _post(self, sender: str, send: Send) -> None:
        self.letters.append((sender, send))


def led(*nodes: str, cache_bytes: int = 1 << 20) -> Stage:
    stage = Stage(*nodes, cache_bytes=cache_bytes)
    stage.arrange(1, "a", *nodes)
    stage.rest()
    return stage


def fetched(replica: Replica, low: int, high: int, bytes_max: int = 1 << 20) -> list[list[Item]]:
    told: list[list[Item]] = []
    replica.do(lambda: replica.copies.fetch(low, high, bytes_max, told.append))
    return told


def test_durable_is_what_a_majority_has_the_primary_among_them() -> None:
    stage = led(*ABC)
    stage.append("a", b"x", b"y")
    stage.rest("b", "c")
    assert stage["b"].copies.last == 2, "copies don't wait for the primary's disk"
    assert stage["a"].copies.durable == 0
    stage["a"].write()
    assert stage["a"].copies.durable == 2

    stage.append("a", b"z")
    stage.rest("a")
    assert stage["a"].copies.durable == 2
    stage.rest("b")
    assert stage["a"].copies.durable == 3


def test_what_came_in_one_step_goes_as_one_group_and_one_letter() -> None:
    stage = led("a", "b")
    stage.append("a", b"x", b"y", b"z")
    copies = [send.message for _, send in stage.letters if isinstance(send.message, Copy)]
    assert [len(copy.items) for copy in copies] == [3]
    assert len(stage["a"].group or ()) == 3


def test_no_ops_are_one_item() -> None:
    stage = led("a", "b")
    stage["a"].do(lambda: stage["a"].copies.fill(1_000))
    assert len(stage["a"].group or ()) == 1
    stage.rest()
    assert stage["b"].told == [Item(0, 1_000, b"")]
    assert stage["a"].copies.durable == 1_000


@pytest.mark.parametrize(
    ("reign", "adopted", "durable"),
    [(1, 1, 1), (1, 0, 0), (0, 0, 0), (2, 2, 0)],
    ids=["its own", "not adopted yet", "the one before", "one that isn't"],
)
def test_only_answers_in_the_own_reign_count(reign: int, adopted: int, durable: int) -> None:
    """Raft, 5.4.2: what came before a reign is durable by a majority that knows of the reign."""
    stage = led("a", "b")
    stage["b"].fall(kept=True)
    stage["a"].fall(kept=True)
    stage["a"].start(0)
    stage.arrange(1, "a", "a", "b")
    stage.append("a", b"x")
    stage.rest()
    life = 1 << 32
    answer = Stored("a", 1, life + reign, 1, life + adopted)
    stage["a"].do(lambda: stage["a"].copies.received("b", answer))
    assert stage["a"].copies.durable == durable


def test_a_primary_that_fell_takes_back_what_only_others_have() -> None:
    stage = led(*ABC)
    stage.append("a", b"lost")
    stage.rest("b")
    stage["a"].fall(kept=False)
    stage["a"].start(0)
    stage.arrange(1, "a", *ABC)
    stage.append("a", b"kept")
    stage.rest()
    assert stage["a"].copies.durable == 1
    assert [stage[node].told for node in ABC] == [[Item(0, 1, b"kept")]] * 3


def test_a_full_disk_acknowledges_nothing_and_is_tried_again() -> None:
    stage = led("a", "b")
    stage.append("a", b"x")
    stage.deliver()
    stage["a"].fail_to_write()
    assert "no space" in (stage["a"].copies.obstacle or "")
    stage.rest()
    assert stage["a"].copies.durable == 0
    stage.wait(100 * MS)
    assert stage["a"].copies.obstacle is None
    assert stage["a"].copies.durable == 1


def test_who_owes_an_answer_is_silent_and_who_keeps_up_is_taken_in() -> None:
    stage = led(*ABC)
    stage["c"].fall(kept=False)
    stage.append("a", b"x")
    stage.wait(PATIENCE)
    assert stage["a"].copies.silent == ()
    stage.wait(PATIENCE)
    assert stage["a"].copies.silent == ("c",)

    stage.arrange(2, "a", "a", "b")
    stage.rest()
    stage["c"].start(stage.now)
    assert stage["a"].copies.caught_up == ()
    stage["c"].do(lambda: stage["c"].copies.learn(Learn(0, 2, "a")))
    stage.wait(PATIENCE)
    assert stage["c"].copies.role is Role.LEARNER
    assert stage["a"].copies.caught_up == ("c",)
    assert stage["c"].told == stage["a"].told


def test_a_seal_is_journaled_before_it_is_said_and_binds_from_then_on() -> None:
    stage = led("a", "b")
    stage.append("a", b"x")
    stage.rest()
    stage["b"].do(lambda: stage["b"].copies.seal("s", Seal(7, 2)))
    stage.deliver()
    assert stage.said == []
    stage.rest()
    assert stage.said == [Sealed(7, 2, 1 << 32, 1)]
    stage.append("a", b"y")
    stage.rest()
    assert stage["a"].copies.durable == 1

    stage["b"].fall(kept=False)
    stage["b"].start(0)
    stage.arrange(1, "a", "a", "b")
    stage.rest()
    assert stage["b"].copies.role is Role.SEALED
    assert stage["a"].copies.durable == 1
    stage.arrange(2, "b", "b")
    stage.rest()
    assert stage["b"].copies.durable == 1
    stage.arrange(3, "b", "b", "a")
    stage.rest()
    assert stage["a"].told == stage["b"].told == [Item(0, 1, b"x")]


def test_a_backup_that_lacks_what_the_primary_began_with_is_not_sealed() -> None:
    stage = led("a", "b")
    stage.append("a", b"x")
    stage.rest()
    stage["b"].fall(kept=False)
    stage["b"].start(0)
    stage.letters.clear()
    stage.arrange(2, "a", "a", "b")
    stage.letters.clear()
    stage["b"].do(lambda: stage["b"].copies.seal("s", Seal(7, 3)))
    assert stage["b"].copies.role is Role.BACKUP
    assert stage["b"].group is None


def test_a_replica_that_lost_its_disk_is_none_of_the_epoch_that_counted_on_it() -> None:
    stage = Stage("a", "b")
    before = stage.disks("a", "b")
    stage.arrange(1, "a", "a", "b", disks=before)
    stage.append("a", b"x")
    stage.rest()
    assert stage["a"].copies.durable == 1
    stage.wipe("b")
    stage.arrange(1, "a", "a", "b", disks=before)
    stage["b"].do(lambda: stage["b"].copies.seal("s", Seal(7, 2)))
    stage.append("a", b"y")
    stage.wait(PATIENCE)
    assert stage["b"].copies.role is Role.IDLE
    assert stage.said == []
    assert stage["a"].copies.durable == 1


def test_it_is_sealed_again_once_it_has_all_that_its_primary_had_and_still_after_a_fall() -> None:
    stage = Stage("a", "b")
    stage.arrange(1, "a", "a", "b", disks=stage.disks("a", "b"))
    stage.append("a", b"x", b"y")
    stage.rest()
    stage.wipe("b")
    after = stage.disks("a", "b")
    stage.arrange(2, "a", "a", "b", disks=after)
    stage["b"].do(lambda: stage["b"].copies.seal("s", Seal(7, 3)))
    assert stage["b"].copies.role is Role.BACKUP
    stage.wait(PATIENCE)
    stage["b"].fall(kept=False)
    stage["b"].start(stage.now)
    stage.arrange(2, "a", "a", "b", disks=after)
    stage["b"].do(lambda: stage["b"].copies.seal("s", Seal(7, 3)))
    stage.rest()
    assert [(each.epoch, each.last) for each in stage.said if isinstance(each, Sealed)] == [(3, 2)]


def test_a_primary_that_lost_its_disk_leads_nobody_and_copies_from_the_next() -> None:
    stage = Stage("a", "b")
    before = stage.disks("a", "b")
    stage.arrange(1, "a", "a", "b", disks=before)
    stage.append("a", b"x")
    stage.rest()
    stage.wipe("a")
    stage.arrange(1, "a", "a", "b", disks=before)
    stage.wait(PATIENCE)
    assert stage["a"].copies.role is Role.IDLE
    assert stage["b"].told == [Item(0, 1, b"x")]
    stage["b"].do(lambda: stage["b"].copies.seal("s", Seal(7, 2)))
    stage.rest()
    stage.arrange(2, "b", "a", "b", disks=stage.disks("a", "b"))
    stage.wait(PATIENCE)
    assert stage["a"].told == stage["b"].told == [Item(0, 1, b"x")]


def test_with_other_disks_altogether_a_log_begins_where_the_one_before_ended() -> None:
    stage = Stage("a", "b")
    stage.arrange(2, "a", "a", "b", disks=stage.disks("a", "b"), begins=50)
    stage.append("a", b"x")
    stage.wait(PATIENCE)
    for node in "ab":
        assert stage[node].told == [Item(50, 1, b"x")]
        assert stage[node].copies.first == 50
        stage[node].fall(kept=False)
        stage[node].start(stage.now)
        assert stage[node].copies.first == 50
    stage.arrange(2, "a", "a", "b", disks=stage.disks("a", "b"), begins=50)
    stage.wait(PATIENCE)
    assert stage["a"].copies.durable == 51


def test_an_epoch_whose_reigns_are_void_is_not_gone_back_behind() -> None:
    """Or its numbers would be given twice, by one that thinks it is an older epoch's primary."""
    stage = led("a", "b")
    stage.arrange(2, "b", "b", "a")
    stage.rest()
    assert stage["a"].copies.epoch == 2
    void = Match("a", 2, 3 << 32, 0, 2 << 32, 0, 0, 50, ())
    stage["a"].do(lambda: stage["a"].copies.received("b", void))
    stage.rest("a")
    assert stage["a"].copies.first == 50
    stage["a"].fall(kept=False)
    stage["a"].start(0)
    stage.arrange(1, "a", "a", "b")
    assert stage["a"].copies.role is Role.IDLE


def test_cutting_back_keeps_whole_items_and_the_others_follow() -> None:
    stage = led("a", "b")
    stage["a"].do(lambda: stage["a"].copies.append(b"three", 3))
    stage.append("a", b"x", b"y")
    stage.rest()
    stage["a"].do(lambda: stage["a"].copies.cut_back(2))
    stage.append("a", b"z")
    stage.wait(PATIENCE)
    assert stage["a"].told == stage["b"].told == [Item(0, 3, b"three"), Item(3, 1, b"z")]
    assert stage["a"].copies.durable == 4


def test_old_items_are_read_back_in_pieces_past_a_failure() -> None:
    stage = led("a", cache_bytes=1_000)
    batches = [bytes([nth]) * 50 for nth in range(20)]
    for batch in batches:
        stage.append("a", batch)
        stage["a"].do(lambda: stage["a"].copies.note(b"between"))
    stage.rest()
    assert stage["a"].copies.items(0, 20) is None
    recent = stage["a"].copies.items(18, 20)
    assert recent is not None
    assert [item.batch for item in recent] == batches[18:]

    told = fetched(stage["a"], 3, 12, bytes_max=400)
    stage["a"].read(fails=True)
    assert told == []
    assert stage["a"].copies.unreadable is not None
    stage.wait(200 * MS)
    stage["a"].read()
    assert [item.batch for item in told[0]] == batches[3:5]


def test_what_was_cut_while_it_was_read_is_not_told() -> None:
    stage = led("a", cache_bytes=0)
    stage.append("a", b"x", b"y", b"z")
    stage.rest()
    told = fetched(stage["a"], 1, 3)
    stage["a"].do(lambda: stage["a"].copies.cut_back(1))
    stage.append("a", b"new")
    stage.rest()
    stage["a"].read()
    stage["a"].read()
    assert told == [[Item(1, 1, b"new")]]


def test_a_replica_far_behind_is_sent_what_was_read_back() -> None:
    stage = led("a", "b", cache_bytes=500)
    stage["b"].fall(kept=False)
    stage.arrange(2, "a", "a")
    for nth in range(50):
        stage.append("a", b"%d" % nth)
    stage.rest()
    stage["b"].start(stage.now)
    stage["b"].do(lambda: stage["b"].copies.learn(Learn(0, 2, "a")))
    stage.rest()
    while stage["a"].reads:
        stage["a"].read()
        stage.rest()
    assert stage["b"].told == stage["a"].told
    assert len(stage["b"].told) == 50


def recovered(act: Callable[[Stage], None]) -> None:
    """After a fall the owner has what it had, and the journal can still be read."""
    stage = led("a", cache_bytes=300)
    for nth in range(30):
        stage.append("a", b"%d" % nth)
        stage.rest()
    act(stage)
    stage.rest()
    before = stage["a"].told, stage["a"].copies.first
    stage["a"].fall(kept=False)
    stage["a"].start(stage.now)
    stage.arrange(1, "a", "a")
    stage.rest()
    assert (stage["a"].told, stage["a"].copies.first) == before
    assert stage["a"].copies.durable == stage["a"].copies.last
    first = stage["a"].copies.first
    told = fetched(stage["a"], first, 30)
    stage["a"].read()
    assert told[0][0].batch == b"%d" % first


@pytest.mark.parametrize("below", [0, 1, 17, 29])
def test_a_trimmed_log_recovers(below: int) -> None:
    recovered(lambda stage: stage["a"].trim(below))


def test_a_log_trimmed_twice_recovers() -> None:
    def act(stage: Stage) -> None:
        stage["a"].trim(5)
        stage.append("a", b"x")
        stage["a"].trim(9)

    recovered(act)


def test_a_log_trimmed_to_its_end_goes_on_there() -> None:
    stage = led("a")
    stage.append("a", b"x", b"y")
    stage.rest()
    stage["a"].trim(2)
    assert not stage["a"].disk.entries
    stage["a"].fall(kept=False)
    stage["a"].start(0)
    stage.arrange(1, "a", "a")
    stage.append("a", b"z")
    stage.rest()
    assert stage["a"].told == [Item(2, 1, b"z")]


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("count", [1, 2, 3])
def test_what_was_durable_stays_and_all_come_to_the_same(count: int, seed: int) -> None:
    world = World(seed, count)
    world.run(2_000)
    world.heal()
    begins = max(replica.begins for replica in world.replicas.values())
    logs = [replica.content(begins, replica.end) for replica in world.replicas.values()]
    assert all(log == logs[0] for log in logs)
    assert world.durable


def test_disks_are_lost_in_that_world() -> None:
    world = World(0, 3)
    world.run(2_000)
    assert world.wiped
