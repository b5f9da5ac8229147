"""Whatever fails, in whatever order: what was acknowledged stays, and in the end all take part."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.core.erwin.controller.stage import SEQUENCERS, Stage

from anabranch.core.machine import Deposed

REPLICAS = ("h0-a", "h0-b", "h1-a", "h1-b")
CONTROLLERS = ("k", "l")

_letter = st.integers(0, 60)
_step = st.one_of(
    st.tuples(st.just("flow"), st.integers(1, 15)),
    st.tuples(st.just("flow"), st.integers(1, 15)),
    st.tuples(st.just("deliver"), _letter),
    st.tuples(st.just("repeat"), _letter),
    st.tuples(st.just("lose"), _letter),
    st.tuples(st.just("tick"), st.integers(1, 4)),
    st.tuples(st.just("run"), st.integers(1, 30)),
    st.tuples(st.just("run"), st.integers(1, 30)),
    st.tuples(st.just("write"), st.sampled_from(CONTROLLERS)),
    st.tuples(st.just("append"), st.sampled_from(SEQUENCERS), st.integers(1, 6)),
    st.tuples(st.just("append to all"), st.integers(10, 30)),
    st.tuples(st.just("store"), st.sampled_from(REPLICAS)),
    st.tuples(st.just("crash"), st.sampled_from((*SEQUENCERS, *REPLICAS))),
    st.tuples(st.just("restart"), st.sampled_from((*SEQUENCERS, *REPLICAS))),
    st.tuples(st.just("wipe"), st.sampled_from(REPLICAS)),
    st.tuples(st.just("cut"), st.sampled_from((*SEQUENCERS, *REPLICAS, *CONTROLLERS))),
    st.tuples(
        st.just("mend"),
    ),
    st.tuples(st.just("end"), st.sampled_from(CONTROLLERS), st.booleans()),
    st.tuples(st.just("begin"), st.sampled_from(CONTROLLERS)),
    st.tuples(st.just("depose"), st.booleans()),
)


class Trial:
    def __init__(self, *, alone: bool, memory: bool) -> None:
        self.alone = alone
        controllers = CONTROLLERS[:1] if alone else CONTROLLERS
        self.stage = Stage(controllers=controllers, alone=alone, memory=memory)
        self.taken: dict[tuple[int, int], set[str]] = {}
        """By view and record: who took it in that view."""
        self.acknowledged: set[int] = set()
        self.stable: list[int] = []
        """What readers may have seen."""
        self.durable: dict[str, list[int]] = {}
        """What every replica of a shard's epoch held."""
        self.stored = 0
        self.stage.run(1_000)

    def take(self, step: Sequence[object]) -> None:
        stage = self.stage
        match step:
            case ("flow", int(count)):
                for _ in range(count):
                    stage.deliver()
            case ("deliver", int(index)):
                stage.deliver(index)
            case ("repeat", int(index)):
                stage.deliver(index, keep=True)
            case ("lose", int(index)) if stage.letters:
                del stage.letters[index % len(stage.letters)]
            case ("tick", int(count)):
                for _ in range(count):
                    stage.tick()
            case ("run", int(count)):
                stage.run(50 * count)
            case ("append to all", int(record)):
                for node in SEQUENCERS:
                    self._append(record, node)
            case ("mend",):
                stage.cut.clear()
            case (what, str(node), *more):
                self._fail(str(what), node, more)
            case ("depose", bool(told)) if not self.alone:
                stage.depose(told=told)
            case _:
                """Nothing to lose, and nobody to depose."""
        self.look()

    def _fail(self, what: str, node: str, more: Sequence[object]) -> None:
        stage = self.stage
        host = stage.hosts.get(node)
        nodes = {**stage.sequencers, **stage.replicas}
        match what:
            case "append":
                assert isinstance(more[0], int)
                self._append(more[0], node)
            case "store":
                replica = stage.replicas[node]
                if replica.up and replica.role == 1:
                    self.stored += 1
                    replica.log.append(self.stored)
            case "crash" if nodes[node].up:
                nodes[node].crash()
            case "restart" if not nodes[node].up:
                nodes[node].restart()
            case "wipe":
                self._wipe(node)
            case "cut" if len(stage.cut) < 2:
                stage.cut.add(node)
            case "write" if host is not None and host.up:
                host.write()
            case "end" if host is not None and host.up:
                host.crash(kept=bool(more[0]))
            case "begin" if host is not None and not host.up:
                host.start()
            case _:
                """It is so already."""

    def _wipe(self, node: str) -> None:
        """A disk is lost while another replica of the epoch has everything."""
        stage, replica = self.stage, self.stage.replicas[node]
        others = [
            each
            for each in stage.replicas.values()
            if each.shard == replica.shard and each is not replica
        ]
        whole = [e for e in others if e.up and e.adopted == replica.adopted and e.adopted]
        shards = stage.host.journal.configurations[-1].shards
        setup = next(each for each in shards if each.name == replica.shard)
        if replica.up and node in setup.replicas and whole and whole[0].node in setup.replicas:
            replica.crash()
            replica.restart(disk=stage.new_disk())

    def _append(self, record: int, node: str) -> None:
        replica = self.stage.sequencers[node]
        view = replica.view
        if view is not None and replica.append(record):
            takers = self.taken.setdefault((view.number, record), set())
            takers.add(f"{node} {replica.life}")
            if takers >= {f"{member.node} {member.life}" for member in view.members}:
                self.acknowledged.add(record)

    def look(self) -> None:
        stage = self.stage
        for leader in stage.sequencers.values():
            view = leader.view
            if view is None or view.leader != leader.node:
                continue
            members = [stage.sequencers[node] for node in view.nodes]
            if all(each.takes and each.view == view for each in members):
                upto = min(len(each.held.done) for each in members)
                log = leader.held.done[:upto]
                assert log[: len(self.stable)] == self.stable[: len(log)], "a position changed"
                self.stable = max(self.stable, log, key=len)
        for replica in stage.replicas.values():
            if replica.role == 1 and replica.durable == len(replica.log) and not replica.silent:
                before = self.durable.get(replica.shard, [])
                if len(replica.log) >= len(before):
                    self.durable[replica.shard] = list(replica.log)

    def heal(self) -> None:
        stage = self.stage
        stage.lossy = False
        stage.cut.clear()
        for host in stage.hosts.values():
            deposed = not self.alone and stage.group.leader != host.node
            if host.up and host.controller.leads and deposed:
                host.step(Deposed())
        for node in (*stage.sequencers.values(), *stage.replicas.values()):
            if not node.up:
                node.restart()
        for host in stage.hosts.values():
            if not host.up:
                host.start()
        stage.run(20_000)
        self.look()

    def check(self) -> None:
        stage = self.stage
        [leader] = [host.controller for host in stage.hosts.values() if host.controller.leads]
        for shard, log in self.durable.items():
            setup = [each for each in leader.configuration.shards if each.name == shard][-1]
            assert set(setup.replicas) == set(setup.nodes)
            for node in setup.replicas:
                assert stage.replicas[node].log[: len(log)] == log, "a durable item is lost"
        view = leader.configuration.view
        assert view is not None
        if leader.obstacle is not None:
            assert stage.memory
            assert f"view {view.number} have lost" in leader.obstacle
            return
        assert set(view.nodes) == set(SEQUENCERS)
        for node in view.nodes:
            replica = stage.sequencers[node]
            assert replica.takes
            assert replica.view == view
            assert self.acknowledged <= set(replica.held.all), "an acknowledged append is lost"


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("memory", [False, True])
def test_whatever_fails_nothing_is_lost_and_all_go_on_in_the_end(
    *, alone: bool, memory: bool
) -> None:
    @settings(max_examples=20)
    @given(st.lists(_step, min_size=10, max_size=60))
    def trial(steps: list[tuple[object, ...]]) -> None:
        trial = Trial(alone=alone, memory=memory)
        trial.stage.lossy = True
        for step in steps:
            trial.take(step)
        trial.heal()
        trial.check()

    trial()
