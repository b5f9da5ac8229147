"""`anabranch up --engine belfast`: a sequencing group and shards on this machine, each replica a
process of its own on loopback, as pods would be.
"""

import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from anabranch.apps.processes.layout import Pair, kept, pairs
from anabranch.apps.processes.ports import HOST
from anabranch.apps.processes.servers import ServerProcess, answers
from anabranch.apps.processes.watch import run_until_told
from anabranch.core.errors import BadRequest
from anabranch.shell.log import Log

FILE = "belfast.json"
SEQUENCER, SHARD = "sequencer", "shard"
T_ORD, T_ORD_US = "ANABRANCH_RULES_T_ORD_US", "10000"
"""Where nobody says otherwise: all processes share this machine's cores and its disk."""
_COMMAND = (sys.executable, "-m", "anabranch.cli.main")


class BelfastShape(msgspec.Struct, frozen=True):
    """How many there are of each."""

    sequencers: int = 3
    shards: int = 2
    copies: int = 2
    """Replicas of each shard."""


class ShardPlace(msgspec.Struct, frozen=True):
    name: str
    replicas: list[Pair]

    @property
    def addresses(self) -> str:
        return ",".join(replica.address for replica in self.replicas)


class BelfastLayout(msgspec.Struct, frozen=True):
    """Where the processes are, and by which names."""

    cluster: str
    sequencers: list[Pair]
    shards: list[ShardPlace]

    @property
    def members(self) -> str:
        return ",".join(each.address for each in self.sequencers)

    @property
    def url(self) -> str:
        return f"belfast://{self.members}/{self.cluster}"


def settle(folder: Path, shape: BelfastShape) -> BelfastLayout:
    """The one that this folder has, with more shards if more are asked for; or a new one."""
    path = folder / FILE
    if not path.exists():
        cluster = f"local-{secrets.token_hex(4)}"
        # All at once: nobody listens at any of them yet, and another call might give one again.
        there = pairs(shape.sequencers + shape.shards * shape.copies)
        members, replicas = there[: shape.sequencers], there[shape.sequencers :]
        return kept(path, BelfastLayout(cluster, members, _places(0, replicas, shape.copies)))
    found = msgspec.json.decode(path.read_bytes(), type=BelfastLayout)
    if len(found.sequencers) != shape.sequencers:
        reason = f"it has {len(found.sequencers)} sequencers, which stay"
        raise BadRequest(f"the log in {folder}", reason)
    if len(found.shards) > shape.shards:
        reason = (
            f"it has {len(found.shards)} shards: start it with all of them, and let one go with "
            "`anabranch belfast leave`"
        )
        raise BadRequest(f"the log in {folder}", reason)
    if len(found.shards) == shape.shards:
        return found
    first = len(found.shards)
    more = _places(first, pairs((shape.shards - first) * shape.copies), shape.copies)
    return kept(path, msgspec.structs.replace(found, shards=[*found.shards, *more]))


def _places(first: int, replicas: list[Pair], copies: int) -> list[ShardPlace]:
    """Of shards numbered from `first` on, so many replicas each."""
    return [
        ShardPlace(f"shard-{first + number}", replicas[number * copies : (number + 1) * copies])
        for number in range(len(replicas) // copies)
    ]


class Node(ServerProcess):
    """A sequencer or a replica of a shard; it is ready when its probe says so."""

    def __init__(
        self,
        kind: str,
        name: str,
        pair: Pair,
        folder: Path,
        told: Sequence[str],
        settings: Mapping[str, str],
    ) -> None:
        self.kind = kind
        self.pair = pair
        flags = ["--name", name, "--host", HOST, "--port", str(pair.port), *told]
        flags += ["--probe-port", str(pair.probes), "--data", str(folder / name / "data")]
        flags += ["--log-format", "json"]
        command = [*_COMMAND, kind, *flags]
        super().__init__(name, command, folder / name, self._is_ready, settings)

    def _is_ready(self) -> bool:
        return answers(self.pair.probes, "/readyz") == 200


class LocalBelfast:
    """All processes of one log."""

    def __init__(
        self,
        folder: Path,
        layout: BelfastLayout,
        *,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """`settings`: more of the environment, `ANABRANCH_RULES_T_ORD_US` and so on."""
        self.layout = layout
        self._folder = folder
        self._settings = settings or {}
        self.sequencers = [
            self._sequencer(f"sequencer-{number}", pair)
            for number, pair in enumerate(layout.sequencers)
        ]
        self.shards = {place.name: self._replicas(place) for place in layout.shards}

    def _sequencer(self, name: str, pair: Pair) -> Node:
        told = ["--cluster", self.layout.cluster, "--members", self.layout.members]
        return Node(SEQUENCER, name, pair, self._folder, told, self._settings)

    def _replicas(self, place: ShardPlace) -> list[Node]:
        told = ["--cluster", self.layout.cluster, "--sequencers", self.layout.members]
        told += ["--shard", place.name, "--replicas", place.addresses]
        return [
            Node(SHARD, f"{place.name}-{number}", pair, self._folder, told, self._settings)
            for number, pair in enumerate(place.replicas)
        ]

    def add_shard(self, place: ShardPlace) -> list[Node]:
        """One more, which joins by itself when it is started."""
        assert place.name not in self.shards
        self.shards[place.name] = self._replicas(place)
        return self.shards[place.name]

    @property
    def replicas(self) -> list[Node]:
        return [replica for replicas in self.shards.values() for replica in replicas]

    @property
    def processes(self) -> list[Node]:
        return [*self.sequencers, *self.replicas]

    def start(self, told: Callable[[str], None]) -> None:
        """Return when everything is ready; else raise why it isn't, with nothing left running."""
        whole = False
        try:
            for what, nodes in (
                (f"{len(self.sequencers)} sequencers", self.sequencers),
                (f"{len(self.shards)} shards", self.replicas),
            ):
                told(what)
                for node in nodes:
                    if not node.running:
                        node.launch()
                for node in nodes:
                    node.wait_ready()
            whole = True
        finally:
            if not whole:
                self.kill()

    def stop(self) -> None:
        for nodes in (self.replicas, self.sequencers):
            for node in nodes:
                node.ask_to_end()
            for node in nodes:
                node.wait_ended()

    def kill(self) -> None:
        for node in self.processes:
            node.kill()


def run(folder: Path, layout: BelfastLayout, log: Log, settings: Mapping[str, str]) -> None:
    """Until a signal says so; the second signal kills."""
    cluster = LocalBelfast(folder, layout, settings=settings)

    def serving() -> None:
        log.info("serving", url=layout.url, shards=len(layout.shards), folder=str(folder))

    run_until_told(cluster, log, serving)
