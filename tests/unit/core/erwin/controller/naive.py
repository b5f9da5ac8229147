"""A replica of a shard in as few words as a controller's tests need; copies take no time."""

from collections.abc import Callable

from anabranch.core.erwin.protocol.letters import (
    Configuration,
    LearnShard,
    SealShard,
    ShardPresent,
    ShardSealed,
    ShardSetup,
)
from anabranch.core.replication.replica import Role

Post = Callable[[str, str, object], None]


class NaiveShardReplica:
    def __init__(
        self, shard: str, node: str, nodes: tuple[str, ...], disk: int, post: Post
    ) -> None:
        self.shard = shard
        self.node = node
        self.nodes = nodes
        self.disk = disk
        self.leaving = False
        self.post = post
        self.up = True
        self.log: list[int] = []
        self.adopted = 0
        """The last epoch whose primary's log this one held from its beginning."""
        self.sealed = 0
        self.stable = 0
        self.trimmed = 0
        self.fence = 1
        self.base = 0
        self._restarted()

    def _restarted(self) -> None:
        self.epoch = 0
        self.version = 0
        self.primary = ""
        self.replicas: tuple[str, ...] = ()
        self.durable = 0
        self.role = Role.SEALED if self.sealed > self.adopted else Role.IDLE
        self.silent: tuple[str, ...] = ()
        self.caught_up: tuple[str, ...] = ()

    def crash(self) -> None:
        self.up = False

    def restart(self, *, disk: int | None = None) -> None:
        assert not self.up
        self.up = True
        if disk is not None:
            self.disk, self.log, self.adopted, self.sealed = disk, [], 0, 0
            self.stable = self.trimmed = self.fence = 0
        self._restarted()

    def receive(self, sender: str, letter: object) -> None:
        if not self.up:
            return
        match letter:
            case Configuration():
                self._configure(letter)
            case SealShard():
                self._seal(sender, letter)
            case LearnShard():
                later = letter.epoch > max(self.epoch, self.sealed - 1, self.adopted)
                idle = letter.epoch == self.epoch and self.role is Role.IDLE
                if later or idle:
                    self._enter(letter.epoch, letter.primary, Role.LEARNER)
            case _:
                raise AssertionError(letter)

    def _configure(self, configuration: Configuration) -> None:
        if configuration.version <= self.version:
            return
        self.version = configuration.version
        for setup in configuration.shards:
            if setup.name == self.shard and not setup.removed and setup.epoch:
                self._arrange(setup)

    def _arrange(self, setup: ShardSetup) -> None:
        if setup.epoch < max(self.epoch, self.sealed, self.adopted):
            return
        listed = self.node in setup.replicas
        listed = listed and setup.disks[setup.replicas.index(self.node)] == self.disk
        if setup.epoch == self.epoch and (self.replicas or not listed):
            self.replicas = setup.replicas
            return
        self.replicas = setup.replicas
        role = Role.PRIMARY if self.node == setup.primary else Role.BACKUP
        self._enter(setup.epoch, setup.primary, role if listed else Role.IDLE)

    def _enter(self, epoch: int, primary: str, role: Role) -> None:
        self.epoch, self.primary, self.role = epoch, primary, role
        self.silent = self.caught_up = ()
        if role is Role.PRIMARY:
            self.adopted = epoch

    def _seal(self, sender: str, seal: SealShard) -> None:
        complete = self.role is Role.PRIMARY or (
            self.role is Role.BACKUP and self.adopted == self.epoch
        )
        if seal.epoch == self.epoch + 1 and complete:
            self.sealed, self.role = seal.epoch, Role.SEALED
        if self.role is Role.SEALED and self.sealed == seal.epoch:
            sealed = ShardSealed(
                shard=self.shard,
                node=self.node,
                epoch=seal.epoch,
                last_term=self.adopted,
                last=len(self.log),
            )
            self.post(self.node, sender, sealed)

    def copy(self, others: dict[str, "NaiveShardReplica"]) -> None:
        """As a primary: to all that are there in this epoch, and count what is durable."""
        if not self.up or self.role is not Role.PRIMARY:
            return
        there = {
            each.node: each
            for each in others.values()
            if each.up and each.epoch == self.epoch and each.primary == self.node
        }
        followers = [e for e in there.values() if e.role in {Role.BACKUP, Role.LEARNER}]
        for each in followers:
            each.log, each.adopted = list(self.log), self.epoch
            each.fence, each.base = self.fence, self.base
            each.stable, each.trimmed = self.stable, self.trimmed
        backups = [node for node in self.replicas if node != self.node]
        held = [e.node for e in followers if e.role is Role.BACKUP]
        self.silent = tuple(node for node in backups if node not in held)
        if not self.silent:
            self.durable = len(self.log)
        self.caught_up = tuple(e.node for e in followers if e.role is Role.LEARNER)

    def present(self) -> ShardPresent:
        return ShardPresent(
            shard=self.shard,
            node=self.node,
            disk=self.disk,
            epoch=self.epoch,
            role=self.role,
            durable=self.durable,
            held=self.durable,
            stable=self.stable,
            silent=self.silent,
            caught_up=self.caught_up,
            version=self.version,
            nodes=self.nodes,
            trimmed=self.trimmed,
            fence=self.fence,
            base=self.base,
            established=self.role is Role.PRIMARY and not self.silent,
            leaving=self.leaving,
        )
