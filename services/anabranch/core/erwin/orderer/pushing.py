"""The leader of one fence: cuts its ring into row groups, pushes them to every shard, and has them
dropped from the rings when all shards hold them (LazyLog, 4.3; decision 58).

Rules it holds:
1. Positions are dense from the fence's base on, in the ring's order.
2. A group is cut once. What is sent again in a fence is what was sent before.
3. Every shard gets every row; `order` is called when all shards hold the rows, in their order.
4. A shard is told that a position is stable only if it is.
5. Rows are cut when every shard has answered in this fence: a shard that nothing was ever pushed to
   is named by no row, and so has no part in what a lost view leaves.
"""

from anabranch.core.alarms import Alarms
from anabranch.core.erwin.orderer.counters import OrdererCounters
from anabranch.core.erwin.orderer.cutting import Cutting
from anabranch.core.erwin.orderer.patience import Patience
from anabranch.core.erwin.orderer.row_groups import GroupsUnderWay, PushBounds, RowGroup
from anabranch.core.erwin.orderer.shard_cursor import ShardCursor
from anabranch.core.erwin.protocol.letters import Configuration, Push, Pushed, Stale
from anabranch.core.erwin.protocol.rows import NO_SHARD, Fence
from anabranch.core.machine import Effect, Send
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.state.replica_part import SequencingPart
from anabranch.core.types import Milliseconds, Position


class Pushing:
    """A shard that is slow or away stops the ordering. Appends go on until the ring is full."""

    def __init__(
        self,
        fence: Fence,
        replica: SequencingPart,
        effects: list[Effect],
        alarms: Alarms,
        *,
        bounds: PushBounds,
        counters: OrdererCounters,
        patience: Patience,
    ) -> None:
        self.fence = fence
        self.base = replica.ordered
        self.cursors: dict[int, ShardCursor] = {}
        """By the shard's number."""
        self.groups = GroupsUnderWay(self.base)
        self.trim: Position = 0
        """Shards are told to forget what lies below."""
        self.over = False
        """There is a later fence: nothing that is sent would be taken."""
        self._replica = replica
        self._effects = effects
        self._alarms = alarms
        self._bounds = bounds
        self._counters = counters
        self._patience = patience
        self._cutting = Cutting(replica, self.groups, self.cursors, bounds, self._wait_ms)
        self._configuration: Configuration | None = None
        self._ordered = self.base
        """`order` was called for everything below."""
        self._complete = False
        """Every shard is known to take part."""
        self._watching = False
        self._closed = False

    @property
    def awaits_shard(self) -> str:
        """The ordering waits for a configuration that knows this shard; empty if it doesn't."""
        return self._cutting.awaits_shard

    @property
    def idle(self) -> bool:
        """Nothing that was taken from the ring is yet to be held by all shards."""
        return self._cutting.idle and not len(self.groups)

    @property
    def trimmed(self) -> Position:
        """All shards have journaled this trim; 0 without shards."""
        return min((each.trimmed for each in self.cursors.values()), default=0)

    def close(self) -> None:
        """Another start or another leader follows."""
        assert not self._closed, "a fence ends once"
        self._closed = True

    def arrange(self, configuration: Configuration) -> None:
        """A configuration of the fence's view. Shards whose replicas have no epoch yet take no
        part; a shard that is added later begins with the first group that is still here: what came
        before is ordered, and names it nowhere.
        """
        assert configuration.view is not None
        assert configuration.view.number == self.fence.view
        self._configuration = configuration
        present = {
            setup.number: setup
            for setup in configuration.shards
            if setup.epoch > 0 and not setup.removed
        }
        for number, setup in present.items():
            assert number != NO_SHARD
            cursor = self.cursors.get(number)
            if cursor is None:
                self.cursors[number] = ShardCursor(setup, self.groups.first)
            else:
                cursor.arrange(setup)
        for number in self.cursors.keys() - present.keys():
            # A shard is removed when everything on it is trimmed: no group here waits for it.
            del self.cursors[number]
        self._complete = False

    def answered(self, sender: str, answer: Pushed) -> None:
        """An answer counts if it is of this fence and of the shard's primary of today."""
        cursor = self.cursors.get(answer.shard)
        if cursor is None or answer.fence != self.fence or sender != cursor.setup.primary:
            return
        if answer.upto > cursor.reached or answer.wanted > cursor.reached:
            self._counters.nonsense += 1
            return
        self._note_voided(answer)
        excess = cursor.more_excess(answer)
        if excess and self._replica.leads:
            self._replica.bound_uncounted(excess)
        cursor.take(answer)
        # A trim that an earlier leader began is brought to its end: somebody asked for it, and
        # shards that differ in where they begin serve nobody.
        self.trim = max(self.trim, min(answer.trimmed, self._replica.stable))
        if answer.wanted >= 0 and cursor.rewind(answer.wanted):
            self._counters.gaps += 1

    def _wait_ms(self, id: AppendId) -> Milliseconds:
        return self._patience.wait_ms(self._replica.ring.announcement(id), self._alarms.now)

    def _note_voided(self, answer: Pushed) -> None:
        """Who announced rows whose data hasn't come has held up everybody else. Rows of one answer
        were waited for at the same time.
        """
        waited: dict[int, Milliseconds] = {}
        for row, wait_ms in self.groups.rows_at(sorted(answer.voided)):
            announced = self._replica.ring.announcement(row.id)
            who = announced.who if announced is not None else -1
            waited[who] = max(waited.get(who, 0), wait_ms)
        for who, wait_ms in waited.items():
            self._patience.held_up(who, wait_ms, self._alarms.now)

    def ask_counts(self) -> None:
        """Have every shard say what it has counted, also if nothing is pushed to it."""
        if self._configuration is None:
            return
        for cursor in self.cursors.values():
            if cursor.reachable and cursor.fenced:
                cursor.counted = False
                self._push(cursor, None)

    @property
    def counted(self) -> bool:
        """Every shard that was asked has said so."""
        return all(each.counted for each in self.cursors.values())

    def refused(self, sender: str, letter: Stale) -> None:
        primaries = (each.setup.primary for each in self.cursors.values())
        if letter.fence > self.fence and sender in primaries and not self.over:
            self.over = True
            self._counters.fenced += 1

    def linked(self, node: str) -> None:
        """What was sent on the connection before may be lost."""
        for cursor in self.cursors.values():
            if cursor.setup.primary == node:
                cursor.doubt()

    def settle(self) -> None:
        """The end of a step: what came in it is cut and sent."""
        self._order()
        if self._configuration is None or self.over:
            return
        self._cut(self._configuration)
        for cursor in self.cursors.values():
            if cursor.reachable:
                self._send(cursor)
        self._watch()

    def _order(self) -> None:
        if not len(self.groups):
            return
        held = min((each.held for each in self.cursors.values()), default=self.groups.first)
        ids: list[AppendId] = []
        positions: list[Position] = []
        for group in self.groups.release(held):
            assert group.first == self._ordered, "groups are ordered one after the other"
            self._ordered = group.end
            ids += [row.id for row in group.rows]
            positions += [row.first for row in group.rows]
        if ids:
            self._counters.ordered += len(ids)
            self._replica.order(ids, positions, self._ordered)

    def _cut(self, configuration: Configuration) -> None:
        if not self._complete:
            self._complete = all(each.takes_part for each in self.cursors.values())
        if not self._complete or not self.cursors:
            return
        while (group := self._cutting.next_group(configuration)) is not None:
            self.groups.add(group)
            for number in group.loads:
                self.cursors[number].give(group)
            self._counters.groups += 1
            self._counters.rows += len(group.rows)
            self._counters.records += group.end - group.first

    def _send(self, cursor: ShardCursor) -> None:
        """The rows that it wasn't sent; without any, whatever else it has yet to be told."""
        if cursor.sent == self.groups.end:
            stable = self._replica.stable
            if not cursor.greeted or not cursor.knows(stable=stable, trimmed=self.trim):
                known = cursor.greeted and cursor.fenced and cursor.told_trimmed >= self.trim
                self._push(cursor, None, answer_later=known)
            return
        for group in self.groups.since(cursor.sent):
            self._push(cursor, group)

    def _push(
        self, cursor: ShardCursor, group: RowGroup | None, *, answer_later: bool = False
    ) -> None:
        """Without a group: fence, tell what is stable and trimmed, and ask how far the shard is."""
        stable = self._replica.stable
        assert stable <= self._ordered, "what isn't held by all shards isn't stable"
        push = Push(
            fence=self.fence,
            base=cursor.base,
            first=group.first if group else cursor.sent,
            rows=group.rows if group else [],
            batches=group.batches.get(cursor.setup.number, []) if group else [],
            stable=stable,
            trimmed=self.trim,
            answer_later=answer_later,
            waits_ms=group.waits_ms if group else [],
            announced_bytes=group.loads.get(cursor.setup.number, 0) if group else -1,
        )
        self._count(cursor, group)
        if group is not None:
            assert cursor.base <= group.first <= cursor.sent < group.end, "no gap, no repetition"
            cursor.sent = group.end
            cursor.reached = max(cursor.reached, group.end)
        cursor.greeted = True
        cursor.told_stable, cursor.told_trimmed = stable, self.trim
        self._effects.append(Send(cursor.setup.primary, push))

    def _count(self, cursor: ShardCursor, group: RowGroup | None) -> None:
        if group is None:
            self._counters.empty += 1
        elif group.end <= cursor.reached:
            self._counters.repeated += 1
        else:
            self._counters.pushes += 1

    # Silence.

    def _watch(self) -> None:
        if not self._watching and any(each.owes for each in self.cursors.values()):
            self._watching = True
            self._alarms.after(self._bounds.retry_ms, self._look)

    def _look(self) -> None:
        """Ask who owes an answer and has confirmed nothing since the last look. The question is
        small: the answer says what is to be sent again.
        """
        self._watching = False
        if self._closed or self.over:
            return
        for cursor in self.cursors.values():
            if cursor.owes and not cursor.advanced:
                cursor.greeted = False
            cursor.advanced = False
            cursor.ask_anew()
        self._watch()
