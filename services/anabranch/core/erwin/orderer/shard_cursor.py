"""One shard, as the leader of a fence knows it."""

from collections import deque

from anabranch.core.erwin.orderer.row_groups import RowGroup
from anabranch.core.erwin.protocol.letters import Pushed, ShardSetup
from anabranch.core.types import Position


class ShardCursor:
    """Rows below `held` are durable at the shard; those below `sent` are on their way to it.

    What a shard holds never shrinks within a fence, so the cursor takes no answer back. Only `sent`
    goes back, when letters were lost.
    """

    def __init__(self, setup: ShardSetup, base: Position) -> None:
        assert setup.epoch > 0, "a shard takes part once its replicas have an epoch"
        self.setup = setup
        self.base = base
        """Where this fence begins at this shard."""
        self.sent = base
        self.reached = base
        """The furthest that `sent` ever was."""
        self.held = base
        self.told_stable: Position = 0
        self.told_trimmed: Position = 0
        self.knows_stable: Position = 0
        self.trimmed: Position = 0
        """The shard has journaled this trim."""
        self.greeted = False
        """Its primary of today was sent something."""
        self.fenced = False
        """Its primary of today has answered."""
        self.advanced = False
        """It has confirmed something since the last look at who is silent."""
        self.counted = True
        """It has said what it counted since it was asked for that."""
        self.bytes_under_way = 0
        """Of its own records."""
        self.bytes_given = 0
        self.last: Pushed | None = None
        self._excess = 0
        self._rewound: Position = -1
        self._flights: deque[tuple[Position, int]] = deque()
        """Where each group with own records ends that isn't held yet, and the records' bytes."""

    @property
    def reachable(self) -> bool:
        return bool(self.setup.primary)

    @property
    def takes_part(self) -> bool:
        """It has answered in this fence, and so has journaled it: rows may name it."""
        return self.last is not None

    @property
    def owes(self) -> bool:
        """Something was sent to it that it hasn't confirmed."""
        return (
            not self.fenced
            or self.held < self.sent
            or self.knows_stable < self.told_stable
            or self.trimmed < self.told_trimmed
        )

    @property
    def _confirmed(self) -> tuple[bool, Position, Position, Position]:
        return self.fenced, self.held, self.knows_stable, self.trimmed

    def knows(self, *, stable: Position, trimmed: Position) -> bool:
        """Whether it was told so much."""
        return self.told_stable >= stable and self.told_trimmed >= trimmed

    def arrange(self, setup: ShardSetup) -> None:
        """The configuration has changed."""
        assert setup.number == self.setup.number
        if (setup.epoch, setup.primary) != (self.setup.epoch, self.setup.primary):
            self.doubt()
            self._excess = 0
        self.setup = setup

    def give(self, group: RowGroup) -> None:
        """The group names it in `loads`."""
        assert group.end > self.held, "a group is given before it is sent"
        assert not self._flights or group.end > self._flights[-1][0]
        load = group.loads[self.setup.number]
        self._flights.append((group.end, load))
        self.bytes_under_way += load
        self.bytes_given += load

    def take(self, answer: Pushed) -> None:
        assert answer.upto <= self.reached, "the caller has refused what can't be"
        before = self._confirmed
        self.fenced = True
        self.last = answer
        self.counted = True
        self.knows_stable = answer.stable
        self.trimmed = max(self.trimmed, answer.trimmed)
        self.held = max(self.held, answer.upto)
        self.advanced = self.advanced or self._confirmed != before
        self.sent = max(self.sent, self.held)
        while self._flights and self._flights[0][0] <= self.held:
            self.bytes_under_way -= self._flights.popleft()[1]
        assert self.bytes_under_way >= 0

    def more_excess(self, answer: Pushed) -> int:
        """Bytes beyond what was announced that no answer of this primary has told of before."""
        more = max(0, answer.excess_bytes - self._excess)
        self._excess += more
        return more

    def rewind(self, wanted: Position) -> bool:
        """Send again from here; False if that is under way already.

        Every push behind one gap is answered with the same `wanted`: only the first of these
        answers counts, until the shard has got further or was asked anew.
        """
        assert self.held <= self.sent <= self.reached
        target = max(wanted, self.held)
        if target >= self.sent or target == self._rewound:
            return False
        self.sent = self._rewound = target
        return True

    def doubt(self) -> None:
        """Its primary is another one, or another connection leads there: what was sent may be lost,
        and a primary that was restarted has forgotten what is stable.
        """
        self.greeted = self.fenced = False
        self.knows_stable = 0
        self.ask_anew()

    def ask_anew(self) -> None:
        """What it wants next counts, whether it has wanted that before or not."""
        self._rewound = -1
