"""A log of another engine on this machine: sequencers and shards, each replica a process of its own
on loopback, or in a network namespace of its own, as pods would be.
"""

import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from anabranch.apps.processes.layout import Pair, asked, kept, pairs, read
from anabranch.apps.processes.namespaces import Machines, Network, check_rights, new_network
from anabranch.apps.processes.readiness import wait_seated
from anabranch.apps.processes.servers import START_S, ServerProcess, ask
from anabranch.apps.processes.supervisor import Listener
from anabranch.core.bolt.protocol.commands import FRONT
from anabranch.core.bolt.state.catalogue import REPLICAS_APART, SEQUENCERS_APART
from anabranch.core.errors import BadRequest, Unavailable
from anabranch.core.quota import AppendShare, Quota
from anabranch.core.storage.black_box_address import BlackBoxAddress

FILES = {"belfast": "belfast.json", "erwin": "erwin.json", FRONT: "lazy.json"}
"""By engine: in a log's folder, where its processes are."""
QUOTA_FILE = "quota.json"
PORTS = (7440, 7441)
"""Of a process that has a host of its own."""
SEQUENCER, SHARD = "sequencer", "shard"
NOT_READY = 503
T_ORD = "ANABRANCH_RULES_T_ORD_US"
_COMMAND = (sys.executable, "-m", "anabranch.cli.main")


class Promise(msgspec.Struct, frozen=True):
    """What an Erwin log, or a lazy front, is created with, and keeps."""

    mode: str = "m"
    durability: str = "fsync"
    black_box: str = ""
    """Where its shards keep their records; empty: in their own folders."""


class LogShape(msgspec.Struct, frozen=True):
    """How many processes there are of each kind; None leaves a folder's own number, or takes the
    default for a new one.
    """

    sequencers: int | None = None
    shards: int | None = None
    copies: int | None = None


class Counts(msgspec.Struct, frozen=True):
    sequencers: int = SEQUENCERS_APART["belfast"]
    shards: int = 2
    copies: int = REPLICAS_APART
    """Replicas of each shard."""


class ShardPlace(msgspec.Struct, frozen=True):
    name: str
    replicas: list[Pair]

    @property
    def addresses(self) -> str:
        return ",".join(replica.address for replica in self.replicas)


class LogLayout(msgspec.Struct, frozen=True):
    """Where the processes are, and by which names."""

    cluster: str
    sequencers: list[Pair]
    shards: list[ShardPlace]
    network: Network | None = None
    """None: they are all on loopback."""
    token: str = ""
    """Asked of clients, and of each other, where anybody else could reach them."""
    peer_token: str = ""
    engine: str = "belfast"
    promise: Promise | None = None

    @property
    def members(self) -> str:
        return ",".join(each.address for each in self.sequencers)

    @property
    def url(self) -> str:
        return f"belfast://{self.members}/{self.cluster}"

    @property
    def access(self) -> str:
        """For a program that may know the token."""
        return self.url.replace("//", f"//{self.token}@", 1) if self.token else self.url

    @property
    def counts(self) -> Counts:
        """A log without shards has no number of replicas of its own: the default."""
        copies = len(self.shards[0].replicas) if self.shards else Counts().copies
        return Counts(len(self.sequencers), len(self.shards), copies)

    @property
    def machines(self) -> int:
        return len(self.sequencers) + sum(len(place.replicas) for place in self.shards)


def settle(
    folder: Path,
    shape: LogShape,
    *,
    engine: str = "belfast",
    promise: Promise | None = None,
    namespaces: bool = False,
) -> LogLayout:
    """The one that this folder has, with more shards if more are asked for; or a new one."""
    path = folder / FILES[engine]
    if not path.exists():
        counts = asked(shape, Counts(sequencers=SEQUENCERS_APART[engine]))
        made = _new(counts, namespaces=namespaces)
        return kept(path, msgspec.structs.replace(made, engine=engine, promise=promise))
    found = read(path, LogLayout)
    wanted = asked(shape, found.counts)
    if namespaces and found.network is None:
        reason = "its processes are on loopback, where others know them: they stay there"
        raise BadRequest(f"the log in {folder}", reason)
    if len(found.sequencers) != wanted.sequencers:
        reason = f"it has {len(found.sequencers)} sequencers, which stay"
        raise BadRequest(f"the log in {folder}", reason)
    if found.counts.copies != wanted.copies:
        reason = f"its shards have {found.counts.copies} replicas each: leave out --copies"
        raise BadRequest(f"the log in {folder}", reason)
    if len(found.shards) > wanted.shards:
        reason = f"it has {len(found.shards)} shards: start it with all of them, and close one then"
        raise BadRequest(f"the log in {folder}", reason)
    if len(found.shards) == wanted.shards:
        return found
    first = len(found.shards)
    count = (wanted.shards - first) * wanted.copies
    there = pairs(count) if found.network is None else _hosts(found.network, found.machines, count)
    more = _places(first, there, wanted.copies)
    return kept(path, msgspec.structs.replace(found, shards=[*found.shards, *more]))


def _new(shape: Counts, *, namespaces: bool) -> LogLayout:
    cluster = f"local-{secrets.token_hex(4)}"
    count = shape.sequencers + shape.shards * shape.copies
    network, tokens = None, ("", "")
    if namespaces:
        check_rights()
        network, tokens = new_network(), (secrets.token_urlsafe(24), secrets.token_urlsafe(24))
    # All at once: nobody listens at any of them yet, and another call might give one again.
    there = pairs(count) if network is None else _hosts(network, 0, count)
    members, replicas = there[: shape.sequencers], there[shape.sequencers :]
    shards = _places(0, replicas, shape.copies)
    return LogLayout(cluster, members, shards, network, *tokens)


def _hosts(network: Network, first: int, count: int) -> list[Pair]:
    return [Pair(*PORTS, network.host(number)) for number in range(first, first + count)]


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
        machines: Machines | None = None,
        command: Sequence[str] = _COMMAND,
    ) -> None:
        self.kind = kind
        self.pair = pair
        inside = machines.inside(pair.host) if machines is not None else ()
        flags = ["--name", name, "--host", pair.host, "--port", str(pair.port), *told]
        flags += ["--probe-port", str(pair.probes), "--data", str(folder / name / "data")]
        flags += ["--log-format", "json"]
        whole = [*inside, *command, kind, *flags]
        super().__init__(name, whole, folder / name, self._is_ready, settings)

    @property
    def ready(self) -> bool:
        """At this moment."""
        return self._is_ready()

    @property
    def obstacle(self) -> str:
        """What it says that it waits for; empty if it says nothing."""
        status, said = ask(self.pair.probes, "/readyz", host=self.pair.host)
        if status != NOT_READY:
            return ""
        try:
            why = msgspec.json.decode(said, type=_Unready).why
        except msgspec.DecodeError:
            return ""  # somebody else has taken its port
        return "; ".join(why)

    def _is_ready(self) -> bool:
        return self.answers(self.pair.probes, "/readyz", host=self.pair.host)


class _Unready(msgspec.Struct, frozen=True):
    why: list[str] = []


class LocalLog:
    """All processes of one log."""

    def __init__(
        self,
        folder: Path,
        layout: LogLayout,
        *,
        settings: Mapping[str, str] | None = None,
        prefix: str = "",
        command: Sequence[str] = _COMMAND,
        notes: Path | None = None,
        etcd: Sequence[str] = (),
        kafka_file: str = "",
    ) -> None:
        """`settings`: more of the environment, `ANABRANCH_RULES_T_ORD_US` and so on. `prefix`: of
        the processes' names, where other logs' processes are supervised beside them. `command`:
        what is run instead of the command line. `notes`: the folder in which it is kept how far
        each journal went, if that is. `etcd`: where an Erwin log's controllers are elected; empty:
        its first sequencer has the only one. `kafka_file`: says how Kafka is reached, if that has
        the records of its shards.
        """
        self._kafka_file = kafka_file
        self._notes = notes
        self._command = command
        self._prefix = prefix
        self.layout = layout
        self._folder = folder
        self._settings = {**environment(layout, etcd), **(settings or {})}
        self.machines: Machines | None = None
        if layout.network is not None:
            self.machines = Machines(layout.network, layout.machines)
            self._settings["ANABRANCH_TOKEN"] = layout.token
            self._settings["ANABRANCH_PEER_TOKEN"] = layout.peer_token
        self.sequencers = [
            self._sequencer(f"sequencer-{number}", pair)
            for number, pair in enumerate(layout.sequencers)
        ]
        self.shards = {place.name: self._replicas(place) for place in layout.shards}

    def _sequencer(self, name: str, pair: Pair) -> Node:
        told = ["--cluster", self.layout.cluster, "--members", self.layout.members]
        if self.layout.engine != "belfast":
            told += self._quota_file
        return self._node(SEQUENCER, name, pair, told)

    def _replicas(self, place: ShardPlace) -> list[Node]:
        told = ["--cluster", self.layout.cluster, "--sequencers", self.layout.members]
        told += ["--shard", place.name, "--replicas", place.addresses]
        if self.layout.engine == "belfast":
            told += self._quota_file
        told += self._black_box(place)
        return [
            self._node(SHARD, f"{place.name}-{number}", pair, told)
            for number, pair in enumerate(place.replicas)
        ]

    @property
    def _quota_file(self) -> list[str]:
        return ["--log-quota-file", str(self._folder / QUOTA_FILE)]

    def _black_box(self, place: ShardPlace) -> list[str]:
        promise = self.layout.promise
        if promise is None or not promise.black_box:
            return []
        number = int(place.name.removeprefix(f"{SHARD}-"))
        told = ["--black-box", str(BlackBoxAddress.of_log(promise.black_box).of_shard(number))]
        return [*told, "--kafka-file", self._kafka_file] if self._kafka_file else told

    def _node(self, kind: str, name: str, pair: Pair, told: Sequence[str]) -> Node:
        noted = [] if self._notes is None else ["--reached-file", str(self._notes / name)]
        return Node(
            kind,
            f"{self._prefix}{name}",
            pair,
            self._folder,
            [*told, *noted],
            self._settings,
            self.machines,
            self._command,
        )

    def limit_appends(self, log: str, quota: Quota | None) -> None:
        """Also after a restart of a process. Each Belfast shard gets its share of the log's quota.
        Sequencers of Erwin and of lazy fronts all see every append: each gets the whole quota.
        """
        parts = max(1, len(self.shards)) if self.layout.engine == "belfast" else 1
        share = AppendShare.of(log, quota, parts)
        if quota is not None or (self._folder / QUOTA_FILE).exists():
            kept(self._folder / QUOTA_FILE, share)

    def add_shard(self, place: ShardPlace) -> list[Node]:
        """One more, which joins by itself when it is started."""
        assert place.name not in self.shards
        assert self.machines is None, "a network's machines are made together"
        self.shards[place.name] = self._replicas(place)
        return self.shards[place.name]

    def grow(self, layout: LogLayout) -> list[Node]:
        """To the shards that this layout has; the processes of new ones are yet to be launched."""
        self.layout = layout
        places = [each for each in layout.shards if each.name not in self.shards]
        return [node for place in places for node in self.add_shard(place)]

    @property
    def replicas(self) -> list[Node]:
        return [replica for replicas in self.shards.values() for replica in replicas]

    @property
    def processes(self) -> list[Node]:
        return [*self.sequencers, *self.replicas]

    @property
    def listeners(self) -> list[Listener]:
        """None in network namespaces: their ports are theirs alone."""
        if self.machines is not None:
            return []
        return [
            Listener(node.name, node.pair.host, port)
            for node in self.processes
            for port in (node.pair.port, node.pair.probes)
        ]

    def start(self, told: Callable[[str], None]) -> None:
        """Return when every process is ready and every shard can have appends ordered; else raise
        why not, with nothing left running.
        """
        whole = False
        try:
            if self.machines is not None and not self.machines.made:
                self.machines.make()
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
            if self.layout.engine == "erwin":
                told("their view")
                for node in self.processes:
                    node.wait_ready()
            elif self.shards:
                told("their windows")
                wait_seated(self.layout.access, self.shards, START_S, self._check)
            whole = True
        finally:
            if not whole:
                self.kill()

    def _check(self) -> None:
        for node in self.processes:
            if not node.running:
                reason = f"it ended before the log was ready: see {node.output}"
                raise Unavailable(f"the process {node.name}", reason)

    def tend(self) -> None:
        """Nothing comes or goes while it runs."""

    def stop(self) -> None:
        """An Erwin log's sequencers have their rings ordered, for which they need the shards."""
        kinds = [self.replicas, self.sequencers]
        for nodes in kinds if self.layout.engine == "belfast" else reversed(kinds):
            for node in nodes:
                node.ask_to_end()
            for node in nodes:
                node.wait_ended()

    def kill(self) -> None:
        for node in self.processes:
            node.kill()
        if self.machines is not None:
            self.machines.take_down()


def environment(layout: LogLayout, etcd: Sequence[str]) -> dict[str, str]:
    """What all processes of a log are told of its engine."""
    if layout.engine == "belfast":
        return {}
    promise = layout.promise or Promise()
    told = {"ANABRANCH_ENGINE": layout.engine, "ANABRANCH_DURABILITY": promise.durability}
    if promise.durability == "memory":
        # Processes of one machine may all fail together: `memory` says that this loses records.
        told["ANABRANCH_ACCEPT_LOSS"] = "true"
    if layout.engine == FRONT:
        return told
    told["ANABRANCH_MODE"] = promise.mode
    if etcd:
        told["ANABRANCH_CONFIGURATIONS"] = "etcd"
        told["ANABRANCH_ETCD_ENDPOINTS"] = ",".join(etcd)
    return told
