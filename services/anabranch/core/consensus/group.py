"""What the parts of a member's consensus share: the group, the log, and what is committed of it."""

from collections.abc import Callable, Sequence

import msgspec

from anabranch.core.alarms import Alarms
from anabranch.core.consensus.disk import GroupDisk
from anabranch.core.consensus.letters import ConsensusLetter
from anabranch.core.consensus.log import GroupLog
from anabranch.core.machine import Effect, Send
from anabranch.core.types import MS, Milliseconds, Nanoseconds


class ConsensusTiming(msgspec.Struct, frozen=True):
    heartbeat_ms: Milliseconds = 50
    """A leader says so often that it leads."""

    election_ms: Milliseconds = 500
    """Without a word from the leader, before another stands; without a majority, before the leader
    steps down.
    """


class Group:
    def __init__(
        self,
        node: str,
        members: Sequence[str],
        timing: ConsensusTiming,
        effects: list[Effect],
        alarms: Alarms,
        snapshot_entries: int,
    ) -> None:
        assert node in members
        assert len(set(members)) == len(members)
        self.node = node
        self.members = tuple(members)
        self.others = tuple(member for member in members if member != node)
        self.majority = len(members) // 2 + 1
        self.timing = timing
        self.effects = effects
        self.alarms = alarms
        self.log = GroupLog()
        self.disk = GroupDisk(self.log, effects, alarms, snapshot_entries, self._picture)
        self.committed = 0
        self.leader: str | None = None
        self.led_at: Nanoseconds = 0
        """When the leader was last heard."""
        self.on_commit: Callable[[int, bytes], None]
        self.take_image: Callable[[], bytes]
        self._heard: dict[str, Nanoseconds] = {}

    @property
    def election_time(self) -> Nanoseconds:
        return self.timing.election_ms * MS

    def heard(self, member: str) -> None:
        self._heard[member] = self.alarms.now

    def was_away(self, missed: Nanoseconds) -> None:
        """Told that this member itself did not run for so long: that isn't others' silence."""
        now = self.alarms.now
        self._heard = {each: min(now, at + missed) for each, at in self._heard.items()}
        self.led_at = min(now, self.led_at + missed)

    @property
    def reachable(self) -> tuple[str, ...]:
        """Those heard within an election's time, and this one."""
        since = self.alarms.now - self.election_time
        return tuple(
            member
            for member in self.members
            if member == self.node or self._heard.get(member, since) > since
        )

    @property
    def is_led(self) -> bool:
        """Is there a leader, as far as one can know?"""
        if self.leader is None:
            return False
        return self.leader == self.node or self.alarms.now - self.led_at < self.election_time

    def send(self, to: str, letter: ConsensusLetter) -> None:
        self.effects.append(Send(to, letter))

    def pledge(self, to: str, letter: ConsensusLetter) -> None:
        """Sent when all is durable that it may build on."""
        self.disk.when_durable(lambda: self.send(to, letter))

    def commit(self, upto: int) -> None:
        while self.committed < upto:
            self.committed += 1
            self.on_commit(self.committed, self.log.content_at(self.committed))

    def _picture(self) -> tuple[int, bytes]:
        return self.committed, self.take_image()
