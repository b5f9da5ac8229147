"""Watches for rows that a shard's primary has bound to no-ops, before these are stable."""

from collections.abc import Callable

from anabranch.core.erwin.protocol.letters import Pushed
from anabranch.core.machine import Effect, Send
from anabranch_sim.erwin.deployment import ErwinDeployment


class NoopTrap:
    """Springs when the primary says that its replicas hold new no-ops, and before anybody hears
    that. It is armed once for each time.
    """

    def __init__(self, deployment: ErwinDeployment, on_noops: Callable[[], None]) -> None:
        self._on_noops = on_noops
        self._primary = ""
        self._noops: dict[str, int] = {}
        """By node: how many it has said that it has bound."""
        overhear = deployment.around.overhear
        assert overhear is not None

        def see(node: str, effect: Effect) -> None:
            overhear(node, effect)
            if isinstance(effect, Send) and isinstance(effect.message, Pushed):
                self._on_pushed(node, effect.message.noops)

        deployment.around.overhear = see

    def arm(self, primary: str) -> None:
        self._primary = primary

    def disarm(self) -> None:
        self._primary = ""

    def _on_pushed(self, node: str, noops: int) -> None:
        new = noops > self._noops.get(node, 0)
        self._noops[node] = noops
        if new and node == self._primary:
            self._primary = ""
            self._on_noops()
