"""From where a replica writes to the others of its shard, and how long it waits for them."""

from dataclasses import dataclass

from anabranch.core.alarms import Alarms
from anabranch.core.machine import Effect, Send
from anabranch.core.replication.config import ShardConfig
from anabranch.core.replication.letters import CopyLetter
from anabranch.core.types import MS, Nanoseconds


@dataclass(slots=True)
class Post:
    config: ShardConfig
    effects: list[Effect]
    alarms: Alarms
    patience: Nanoseconds = 200 * MS
    """So long a replica may owe an answer before it is said to be silent."""

    def send(self, to: str, letter: CopyLetter) -> None:
        self.effects.append(Send(to, letter))

    @property
    def soon(self) -> Nanoseconds:
        """When what wasn't answered by then is said again."""
        return self.alarms.now + self.beat

    @property
    def beat(self) -> Nanoseconds:
        return max(1, self.patience // 4)
