"""One seed: faults while clients work, then healing, after which everything must come right.

Safety is judged from what the clients saw (core/history) and from the state (core/invariants).
Liveness by the clock: once all faults are over, every call finishes, every subscriber catches up,
garbage goes, and the service can tell what became of every log.
"""

from functools import partial
from random import Random

from anabranch.core.bolt.metadata.member import Member
from anabranch.core.bolt.state import invariants, snapshot
from anabranch.core.bolt.state.audit import holdings, inspect
from anabranch.core.bolt.state.placement import READY
from anabranch.core.bolt.state.replica import Replica
from anabranch.core.bolt.state.retention import referenced
from anabranch.core.bolt.state.state import State
from anabranch.core.history import check
from anabranch.core.records.batch import split
from anabranch.core.records.objects import ObjectName
from anabranch.core.records.set_sum import set_sum
from anabranch.core.types import MS, NEVER, Nanoseconds, ObjectId
from anabranch_sim.bolt.client import Account, SimClient
from anabranch_sim.bolt.cluster import CLUSTER, Cluster
from anabranch_sim.bolt.compactors.job import CompactorUser
from anabranch_sim.bolt.compactors.options import JOBS, LONGEST_MS
from anabranch_sim.bolt.directory import Directory
from anabranch_sim.bolt.engine_logs import CatalogueAccount, EngineClient
from anabranch_sim.bolt.faults import BoltFaults
from anabranch_sim.bolt.final_checks import FinalChecks
from anabranch_sim.bolt.options import Options
from anabranch_sim.bolt.scans.scanner import Scanner
from anabranch_sim.bolt.workload import TTL_MS_MAX, Workload
from anabranch_sim.bolt.writers.stream import StreamWriter
from anabranch_sim.world.deployment import Process
from anabranch_sim.world.events import SECOND, World
from anabranch_sim.world.faults import CLOCK_ERROR_MAX
from anabranch_sim.world.simulation import Tell

CATCHING_UP: Nanoseconds = 5 * SECOND
"""How long what nobody asks for may take: standbys that follow, brokers that are found again."""

CONVERGENCE: Nanoseconds = 120 * SECOND
"""How long a healed cluster may take to finish everything."""

SCANS = 2
"""Of each scanner, one after the other."""

_LOOK: Nanoseconds = 20 * MS


class BoltPlugin:
    """A cluster, its clients and its faults."""

    def __init__(self, options: Options, tell: Tell | None = None) -> None:
        self.options = options
        self.world = World(options.seed, tell=tell)
        self.chaos: Nanoseconds = options.chaos_ms * MS
        self.cluster = Cluster(self.world, options)
        self.account = Account(Random(options.seed + 1))
        self.directory = Directory()
        self.clients: list[SimClient] = []
        self.workloads: list[Workload] = []
        self.catalogue = CatalogueAccount(self.world.stamp)
        self.engine_clients: list[EngineClient] = []
        self.stream_writers: list[StreamWriter] = []
        self.scanners: list[Scanner] = []
        self.compactors: list[CompactorUser] = []
        self.faults = BoltFaults(self.cluster, self.clients)
        self.witness = invariants.Witness(self._batches)
        self._violations: list[str] = []
        self._looked = 0
        self._images: dict[int, bytes] = {}
        """A member's state after so many entries of the journal."""
        self._contents: dict[tuple[int, int, int], list[tuple[int, bytes]]] = {}

    @staticmethod
    def of(seed: int, tell: Tell | None = None) -> "BoltPlugin":
        return BoltPlugin(Options.of(seed), tell)

    def violations(self) -> list[str]:
        return self._violations + self.account.faults + self.catalogue.faults

    def counts(self) -> dict[str, int]:
        return {"calls": len(self.account.history.calls)}

    def start(self) -> None:
        options = self.options
        self.cluster.start()
        for number in range(1, options.clients + 1):
            client = SimClient(self.cluster, self.account, number)
            self.clients.append(client)
            pause = self.chaos // options.calls
            workload = Workload(client, self.directory, options.calls, pause)
            workload.clock_error = self._clock_error()
            self.workloads.append(workload)
        first, *others = self.workloads
        first.create("root", first.next)
        for workload in others:
            workload.next()
        for number in range(options.engine_clients):
            self._start_engine_client(number)
        for number in range(options.stream_writers):
            self._start_stream_writer(number)
        for number in range(options.scanners):
            self._start_scanner(number)
        for number in range(options.compactors):
            self._start_compactor(number)
        self._look_often()

    def is_done(self) -> bool:
        writers = all(writer.done for writer in self.stream_writers)
        others = (*self.workloads, *self.engine_clients, *self.scanners, *self.compactors)
        return writers and all(each.done for each in others)

    def converge(self) -> bool:
        if self.world.wait(lambda: self.is_done() and self._all_alive(), CONVERGENCE, _LOOK):
            return True
        self._fail("liveness: a call never finished, or a node never came back")
        return False

    def check(self) -> None:
        world = self.world
        world.run(world.now + TTL_MS_MAX * MS + self._clock_error())
        client = SimClient(self.cluster, self.account, 0)
        self.clients.append(client)
        checks = FinalChecks(client, self.clients, self.directory)
        checks.begin()
        if not world.wait(lambda: checks.over, CONVERGENCE, _LOOK):
            self._fail(f"liveness: {checks.waiting_for()}")
            return
        if not self._settle_catalogue():
            self._fail("liveness: nobody could list the logs of another engine")
        history = self.account.history
        history.finals, history.ended = checks.finals, world.stamp()
        self._violations.extend(map(str, check(history)))
        for writer in self.stream_writers:
            writer.check(history.finals)
        self._check_state()
        self._await_garbage()

    def _start_engine_client(self, number: int) -> None:
        options = self.options
        client = SimClient(self.cluster, self.account, 100 + number)
        self.clients.append(client)
        pause = 2 * self.chaos // options.calls
        follows = EngineClient(client, self.catalogue, options.calls, pause)
        self.engine_clients.append(follows)
        follows.next()

    def _start_stream_writer(self, number: int) -> None:
        clients = [SimClient(self.cluster, self.account, 200 + 10 * number + n) for n in range(2)]
        self.clients += clients
        versions = max(2, self.options.calls // 6)
        writer = StreamWriter(f"query-{number}", clients, self.directory, versions=versions)
        self.stream_writers.append(writer)
        writer.start()

    def _start_scanner(self, number: int) -> None:
        client = SimClient(self.cluster, self.account, 300 + number)
        self.clients.append(client)
        scanner = Scanner(client, self.directory, SCANS, self.chaos)
        self.scanners.append(scanner)
        scanner.next()

    def _start_compactor(self, number: int) -> None:
        client = SimClient(self.cluster, self.account, 400 + number)
        self.clients.append(client)
        user = CompactorUser(client, self.directory, JOBS, self.chaos // JOBS)
        self.compactors.append(user)
        user.next()

    def _settle_catalogue(self) -> bool:
        """What the catalogue says of another engine's logs when all is well."""
        settled: list[bool] = []
        for each in self.engine_clients[:1]:
            each.settle(lambda: settled.append(True))
        return not self.engine_clients or self.world.wait(lambda: bool(settled), CONVERGENCE, _LOOK)

    def _clock_error(self) -> Nanoseconds:
        """How far a leader's clock may be from the one before."""
        return 2 * CLOCK_ERROR_MAX if "clocks" in self.options.faults else 0

    def _all_alive(self) -> bool:
        alive = all(process.alive for process in self.cluster.processes.values())
        return alive and self.cluster.leading() is not None

    def _look_often(self) -> None:
        """The state is right at every moment, not only in the end."""
        states = self.cluster.states()
        if states and not self._violations:
            index, state = max(states, key=lambda each: each[0])
            if index >= self._looked:
                self._looked = index
                self._broken(self.witness.look(state.replica))
                self._broken(invariants.wrong_sums(state.replica, self._sum))
                self._broken(invariants.broken(state.replica))
            self._compare(states)
            self._check_formats()
        if not self.faults.over:
            self.world.after(self.chaos // 8, self._look_often)

    def _compare(self, states: list[tuple[int, State]]) -> None:
        """Whoever has applied the same entries has the same state (spec, B12)."""
        for index, state in states if self.cluster.is_group else ():
            image = snapshot.save(state.replica)
            if self._images.setdefault(index, image) != image:
                self._fail(f"B12 members: two states differ after entry {index}")

    def _check_formats(self) -> None:
        """Nobody leads who might misread what is in the journal."""
        for process in self.cluster.processes.values():
            machine = process.nodes[0].machine
            if isinstance(machine, Member) and machine.leader is not None:
                needed = machine.state.replica.format
                if needed > process.knows:
                    self._fail(f"format: {process.name} leads, and doesn't know {needed}")

    def _check_members(self) -> None:
        """Every standby has come as far as the leader, and everything is served by somebody."""
        world, cluster = self.world, self.cluster
        if not cluster.is_group:
            return
        world.run(world.now + CATCHING_UP, self._all_settled)
        states, last = cluster.states(), cluster.etcd.last
        self._compare(states)
        if [index for index, _ in states] != [last] * cluster.options.members:
            self._fail(f"members: of {last} entries they know {[index for index, _ in states]}")
        placement = cluster.leader().state.replica.placement
        for seat in placement.pool():
            if seat.state != READY:
                self._fail(f"placement: {seat.name} is alive, and counts as {seat.state}")
        for served in (placement.roots, placement.trees, placement.alone):
            for log, broker in served.items():
                if not broker:
                    self._fail(f"placement: nobody serves {log}")

    def _all_settled(self) -> bool:
        cluster = self.cluster
        leader = cluster.leading()
        if leader is None or any(index < cluster.etcd.last for index, _ in cluster.states()):
            return False
        return all(seat.state == READY for seat in leader.state.replica.placement.pool())

    def _check_state(self) -> None:
        """Invariants; the same state again from its snapshot and from the journal (spec, B12)."""
        self._check_members()
        replica = self.cluster.leader().state.replica
        self._broken(invariants.broken(replica))
        self._broken(self.witness.look(replica))
        self._broken(invariants.wrong_sums(replica, self._sum))
        image = snapshot.save(replica)
        if snapshot.save(snapshot.load(image, self.options.limits)) != image:
            self._fail("B12 snapshot: a state isn't what its snapshot gives back")
        again = self.cluster.recover()
        if snapshot.save(again.state.replica) != image:
            self._fail("B12 replay: the journal gives another state than the leader has")
        self._audit(replica)
        missing = [
            object
            for object in sorted(referenced(replica))
            if self._name(object) not in self._stored()
        ]
        if missing:
            self._fail(f"B11 durability: {len(missing)} objects are referenced and not there")

    def _audit(self, replica: Replica) -> None:
        """What `fsck` would say: each object whole, and what every extent says of it is so."""
        for object, held in holdings(replica):
            name = self._name(object)
            if name in self._stored():
                found = inspect(name, CLUSTER, self._stored()[name], held)
                for fault in found.faults:
                    self._fail(f"fsck {fault.code}: {fault.where}: {fault.reason}")

    def _await_garbage(self) -> None:
        """Once every broker has begun a new life, what nothing refers to goes after its grace."""
        limits = self.options.limits
        self._begin_anew()
        wait = (limits.grace_ms + 3 * limits.gc_interval_ms + 2_000) * MS
        if self.compactors:
            # What the last of them left is an orphan when its URLs are over, and then quarantined.
            more_ms = LONGEST_MS + limits.signed_url_ms + 2 * limits.quarantine_ms
            wait += more_ms * MS + self._clock_error()
        self.world.run(self.world.now + wait + self._clock_error())
        replica = self.cluster.leader().state.replica
        kept = referenced(replica)
        for name in self._stored():
            if ObjectName.parse(name).id not in kept:
                self._fail(f"D6 garbage: {name} is still there, and nothing refers to it")
        if replica.references.garbage:
            self._fail(f"D6 garbage: {len(replica.references.garbage)} objects are not forgotten")
        self._broken(invariants.broken(replica))

    def _batches(self, object: ObjectId, offset: int, length: int) -> list[tuple[int, bytes]]:
        """What the store holds there, batch by batch, as their producers made them."""
        place = (object, offset, length)
        if place not in self._contents:
            content = self._stored().get(self._name(object))
            if content is None:
                self._fail(f"B11 durability: {self._name(object)} is referenced and not there")
                return [(NEVER, b"")]
            extent = content[offset : offset + length]
            self._contents[place] = [
                (header.count, extent[at : at + size]) for at, size, header in split(extent)
            ]
        return self._contents[place]

    def _sum(self, object: ObjectId, offset: int, length: int) -> int:
        """The set sum of the batches there, computed anew. Of an object that isn't there it is that
        of nothing, which no extent has.
        """
        return set_sum(batch for _, batch in self._batches(object, offset, length) if batch)

    def _begin_anew(self) -> None:
        """Every process: in a group one after the other, told to end, as for an upgrade."""
        for process in self.cluster.processes.values():
            if not self.cluster.is_group:
                process.die(down=MS)
                continue
            drained = partial(self._is_new, process, process.deaths)
            process.drain()
            if not self.world.run(
                self.world.now + self.options.limits.drain_ms * MS + 2 * SECOND, drained
            ):
                self._fail(f"drain: {process.name} was told to end and all isn't well again")

    def _is_new(self, process: Process, deaths: int) -> bool:
        return process.deaths > deaths and self._all_alive()

    def _stored(self) -> dict[str, bytes]:
        return self.cluster.store.objects

    def _name(self, object: int) -> str:
        return str(ObjectName.of(self.cluster.around.cluster, invariants.ObjectId(object)))

    def _broken(self, broken: list[invariants.Broken]) -> None:
        for each in broken:
            self._fail(f"{each.rule} state: {each.log}: {each.what}")

    def _fail(self, says: str) -> None:
        self._violations.append(says)
