"""How a replica writes to the others, and how long it waits for their answers."""

from dataclasses import dataclass

from anabranch.core.alarms import Alarms
from anabranch.core.machine import Effect, Send
from anabranch.core.replication.config import ReplicaConfig
from anabranch.core.replication.letters import ReplicaLetter
from anabranch.core.types import MS, Nanoseconds


@dataclass(slots=True)
class Links:
    config: ReplicaConfig
    effects: list[Effect]
    alarms: Alarms
    patience: Nanoseconds = 200 * MS
    """A replica that owes an answer for longer than this counts as silent. The owner sets it."""

    def send(self, to: str, letter: ReplicaLetter) -> None:
        assert to != self.config.node
        self.effects.append(Send(to, letter))

    @property
    def next_retry(self) -> Nanoseconds:
        """When a letter that has no answer by then is repeated."""
        return self.alarms.now + max(1, self.patience // 4)
