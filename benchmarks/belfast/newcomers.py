"""Shards that are about to join a log that runs.

Their processes have started, and are linked to everybody, before the moment that is measured: what
a start of Python takes of two cores isn't Belfast's. A shard is admitted once all its replicas have
spoken; so the last replica of each is stopped until then.
"""

import time
from collections.abc import Sequence

from anabranch.apps.processes.layout import pairs
from anabranch.apps.processes.local_log import LocalLog, Node, ShardPlace
from anabranch.apps.processes.servers import answers
from benchmarks.belfast.deployment import Setting
from benchmarks.cluster.local import counted

_LOOK_S = 0.05
_PATIENCE_S = 120.0


class Newcomers:
    def __init__(self, local: LocalLog, setting: Setting, count: int) -> None:
        """Start them, as far as they don't join."""
        assert setting.copies > 1, "nobody could be held back"
        taken = len(local.shards)
        self.names = [f"shard-{taken + number}" for number in range(count)]
        places = pairs(count * setting.copies)
        added = [
            local.add_shard(ShardPlace(name, [places.pop() for _ in range(setting.copies)]))
            for name in self.names
        ]
        self._held = [replicas[-1] for replicas in added]
        _linked(self._held, setting.sequencers)
        for node in self._held:
            node.pause()
        # Until what they have said so far is forgotten: `SILENT_INTERVALS` is 20 T_ord.
        time.sleep(40 * setting.t_ord_ms / 1_000)
        _linked([node for replicas in added for node in replicas[:-1]], setting.sequencers)

    def let_in(self) -> None:
        for node in self._held:
            node.resume()


def _linked(nodes: Sequence[Node], sequencers: int) -> None:
    for node in nodes:
        node.launch()
    end_s = time.monotonic() + _PATIENCE_S
    for node in nodes:
        while not _is_linked(node, sequencers):
            assert time.monotonic() < end_s, f"{node.name} found no sequencers"
            time.sleep(_LOOK_S)


def _is_linked(node: Node, sequencers: int) -> bool:
    serves = answers(node.pair.probes, "/metrics") == 200
    return serves and counted(node).get("peers_connected", 0) >= sequencers
