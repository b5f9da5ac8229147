"""What the parts of a member share: its group, its log, and how much of the log is committed."""

from collections.abc import Callable

import msgspec

from anabranch.core.alarms import Alarms
from anabranch.core.consensus.disk import GroupDisk
from anabranch.core.consensus.letters import ConsensusLetter
from anabranch.core.consensus.log import GroupLog
from anabranch.core.machine import Effect, Send
from anabranch.core.quorum import MAJORITY
from anabranch.core.types import MS, Milliseconds, Nanoseconds

KEPT_ENTRIES = 20_000
SNAPSHOT_ENTRIES = 10_000


class ConsensusTiming(msgspec.Struct, frozen=True, kw_only=True):
    heartbeat_ms: Milliseconds = 50
    """The interval at which a leader sends every follower something."""

    election_ms: Milliseconds = 500
    """How long a leader may be silent before another member stands; and how long a majority may be
    silent before the leader steps down.
    """


class ConsensusConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What one member of a group is given when it starts."""

    node: str
    members: tuple[str, ...]
    """All of them, this one included, in the same order everywhere."""

    no_op: bytes
    """An entry that means nothing to the owner: each leader begins its term with one."""

    timing: ConsensusTiming = ConsensusTiming()

    kept_entries: int = KEPT_ENTRIES
    """Committed entries kept in memory for members that were away for a while. A member that was
    away for longer gets the owner's image.
    """

    snapshot_entries: int = SNAPSHOT_ENTRIES
    """Journaled changes after which a snapshot is taken."""

    def __post_init__(self) -> None:
        assert self.node in self.members
        assert len(set(self.members)) == len(self.members)


class Group:
    def __init__(self, config: ConsensusConfig, effects: list[Effect], alarms: Alarms) -> None:
        self.node = config.node
        self.members = config.members
        self.others = tuple(member for member in config.members if member != config.node)
        self.majority = MAJORITY.size(len(config.members))
        self.no_op = config.no_op
        self.timing = config.timing
        self.effects = effects
        self.alarms = alarms
        self.log = GroupLog()
        self.disk = GroupDisk(self.log, effects, alarms, config.snapshot_entries, self._picture)
        self.committed = 0
        self.leader: str | None = None
        self.led_at: Nanoseconds = 0
        """When the leader's last letter came."""
        self.on_commit: Callable[[int, bytes], None] = lambda index, entry: None
        self.take_image: Callable[[], bytes] = bytes
        self._heard: dict[str, Nanoseconds] = {}

    @property
    def election_time(self) -> Nanoseconds:
        return self.timing.election_ms * MS

    def heard(self, member: str) -> None:
        self._heard[member] = self.alarms.now

    def was_away(self, missed: Nanoseconds) -> None:
        """The process did not run for so long: the others may have written meanwhile."""
        assert missed >= 0, "time never goes back"
        now = self.alarms.now
        self._heard = {each: min(now, at + missed) for each, at in self._heard.items()}
        self.led_at = min(now, self.led_at + missed)

    @property
    def reachable(self) -> tuple[str, ...]:
        """Members that sent something within an election's time, and this one."""
        since = self.alarms.now - self.election_time
        return tuple(
            member
            for member in self.members
            if member == self.node or self._heard.get(member, since) > since
        )

    @property
    def is_led(self) -> bool:
        """True if, as far as this member knows, somebody leads."""
        if self.leader is None:
            return False
        return self.leader == self.node or self.alarms.now - self.led_at < self.election_time

    def send(self, to: str, letter: ConsensusLetter) -> None:
        assert to in self.others
        self.effects.append(Send(to, letter))

    def pledge(self, to: str, letter: ConsensusLetter) -> None:
        """Send a promise once everything is durable that it may rest on."""
        self.disk.when_durable(lambda: self.send(to, letter))

    def commit(self, upto: int) -> None:
        assert upto <= self.log.last
        while self.committed < upto:
            self.committed += 1
            self.on_commit(self.committed, self.log.content_at(self.committed))

    def _picture(self) -> tuple[int, bytes]:
        return self.committed, self.take_image()
