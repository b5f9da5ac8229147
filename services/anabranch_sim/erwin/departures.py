"""Judges how processes end that are told to: each serves on until the controllers have replaced it,
or until its time is over (docs/decisions/0060).
"""

from anabranch.core.erwin.orderer.sequencer import Sequencer
from anabranch.core.erwin.shard.shard import ErwinShard
from anabranch.core.machine import Drain, Effect, Event, Rest
from anabranch.core.types import MS, Nanoseconds
from anabranch_sim.erwin.deployment import ErwinDeployment


class Departures:
    def __init__(self, deployment: ErwinDeployment) -> None:
        self._deployment = deployment
        self._told: dict[tuple[str, int], Nanoseconds] = {}
        """By node and life: when it was told to end."""
        around, witness = deployment.around, deployment.witness
        overhear, on_event = around.overhear, around.on_event
        assert overhear is not None
        assert on_event is not None

        def see_effect(node: str, effect: Effect) -> None:
            overhear(node, effect)
            if isinstance(effect, Rest):
                witness.violations += self._judge(node)

        def see_event(node: str, event: Event) -> None:
            on_event(node, event)
            if isinstance(event, Drain):
                self._on_drain(node)

        around.overhear, around.on_event = see_effect, see_event

    def _on_drain(self, node: str) -> None:
        self._told.setdefault(self._life(node), self._deployment.world.now)

    def _judge(self, node: str) -> list[str]:
        """It ends now: as far as it knows, the log has gone on without it."""
        since = self._told.get(self._life(node))
        if since is None:
            return []
        waited = self._deployment.world.now - since
        others = self._others(node)
        if waited >= self._deployment.limits.handover_ms * MS or not others:
            return []
        return [f"leaving: {node} ends {waited // MS} ms after it was told to, beside {others}"]

    def _life(self, node: str) -> tuple[str, int]:
        return node, self._deployment.node(node).life

    def _others(self, node: str) -> list[str]:
        """With whom it is in a view, or in its shard's epoch, that it knows as the latest."""
        machine = self._deployment.machine(node)
        among: tuple[str, ...] = ()
        if isinstance(machine, Sequencer):
            view = machine.ordering.view
            among = () if view is None else view.nodes
        elif isinstance(machine, ErwinShard):
            me = machine.membership.me
            among = () if me is None else me.replicas
        return [other for other in among if other != node] if node in among else []
