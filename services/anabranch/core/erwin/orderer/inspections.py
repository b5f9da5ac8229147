"""Questions to the leader for the log's status: shards are asked first what they have counted."""

from anabranch.core.alarms import Alarms
from anabranch.core.errors import Unavailable
from anabranch.core.errors.refused import Refused
from anabranch.core.erwin.orderer.ordering import Ordering
from anabranch.core.erwin.orderer.status import status
from anabranch.core.limits import Limits
from anabranch.core.machine import Effect, Reply, Token
from anabranch.core.sequencing.protocol.messages import Elsewhere
from anabranch.core.sequencing.replica import SequencingReplica
from anabranch.core.types import MS, Milliseconds, Nanoseconds

PATIENCE_MS: Milliseconds = 200
"""A shard that doesn't answer in time is shown as it was when it was heard last. What is stable
isn't shown as it was: nobody is to see it go back.
"""


class Inspections:
    def __init__(
        self,
        ordering: Ordering,
        replica: SequencingReplica,
        effects: list[Effect],
        alarms: Alarms,
        limits: Limits,
    ) -> None:
        self._ordering = ordering
        self._replica = replica
        self._effects = effects
        self._alarms = alarms
        self._limits = limits
        self._waiting: dict[Token, Nanoseconds] = {}
        """Until when each waits for shards."""

    def ask(self, token: Token) -> None:
        """Answered when all shards have said what they counted, or their time is over; refused if
        the members of a leader that was restarted haven't said by then what is stable.
        """
        pushing = self._ordering.leading
        assert pushing is not None, "only the leader knows"
        assert token not in self._waiting
        pushing.ask_counts()
        self._waiting[token] = self._alarms.now + PATIENCE_MS * MS
        self._alarms.after(PATIENCE_MS, lambda: None)

    def gone(self, token: Token) -> None:
        self._waiting.pop(token, None)

    def settle(self) -> None:
        """The end of a step."""
        if not self._waiting:
            return
        pushing, now = self._ordering.leading, self._alarms.now
        for token, until in list(self._waiting.items()):
            if pushing is None:
                answer = Elsewhere("")
            elif now >= until and self._replica.stable_awaits:
                answer = Refused.of(self._unknown())
            elif now >= until or (pushing.counted and not self._replica.stable_awaits):
                answer = status(
                    pushing,
                    self._replica,
                    self._ordering.configuration,
                    ring_bytes_max=self._limits.ring_bytes_max,
                )
            else:
                continue
            del self._waiting[token]
            self._effects.append(Reply(token, answer))

    def _unknown(self) -> Unavailable:
        assert self._replica.stable_awaits, "it is known"
        names = ", ".join(self._replica.stable_awaits)
        reason = f"the leader was restarted, and {names} hasn't told it yet what is stable"
        return Unavailable("the status of the log", reason)
