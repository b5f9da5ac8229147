"""How the leader cuts its ring into row groups, and which shard each append goes to."""

from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heapreplace

from anabranch.core.erwin.orderer.row_groups import GroupsUnderWay, PushBounds, RowGroup
from anabranch.core.erwin.orderer.shard_cursor import ShardCursor
from anabranch.core.erwin.protocol.letters import Configuration, ShardSetup
from anabranch.core.erwin.protocol.rows import NO_SHARD, Mode, Row
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.state.replica_part import SequencingPart
from anabranch.core.sequencing.state.ring import Entry
from anabranch.core.types import Milliseconds, Position


class Cutting:
    """Of one fence. The order is the ring's; only the cuts and the shards are decided here."""

    def __init__(
        self,
        replica: SequencingPart,
        groups: GroupsUnderWay,
        cursors: Mapping[int, ShardCursor],
        bounds: PushBounds,
        wait_ms: Callable[[AppendId], Milliseconds],
    ) -> None:
        """`wait_ms`: how long a shard waits for this append's data, in mode st."""
        self.awaits_shard = ""
        """An append names this shard, which the configuration doesn't know yet."""
        self._replica = replica
        self._groups = groups
        self._cursors = cursors
        self._bounds = bounds
        self._wait_ms = wait_ms
        self._gathered: list[Entry] = []
        """Taken from the ring, in its order, and not cut yet."""
        self._gathered_bytes = 0

    @property
    def idle(self) -> bool:
        return not self._gathered

    def next_group(self, configuration: Configuration) -> RowGroup | None:
        """None if there is nothing to cut, or it should wait."""
        groups, bounds = self._groups, self._bounds
        if len(groups) >= bounds.groups_max or groups.size >= bounds.bytes_max:
            return None
        self._gather()
        if not self._gathered or not (self._full or len(groups) < bounds.eager_groups):
            return None
        shards = self._shards_of(configuration)
        return self._cut(shards) if shards else None

    @property
    def _full(self) -> bool:
        bounds = self._bounds
        return (
            self._gathered_bytes >= bounds.group_bytes or len(self._gathered) >= bounds.group_rows
        )

    def _gather(self) -> None:
        room = self._bounds.group_bytes - self._gathered_bytes
        rows = self._bounds.group_rows - len(self._gathered)
        if room <= 0 or rows <= 0:
            return
        for entry in self._replica.take(bytes_max=room, count_max=rows):
            self._gathered.append(entry)
            self._gathered_bytes += entry.size

    def _shards_of(self, configuration: Configuration) -> list[int]:
        """A shard for each gathered append, up to the first whose shard isn't known."""
        self.awaits_shard = ""
        if configuration.mode is Mode.M:
            return self._choose()
        setups = {setup.name: setup for setup in configuration.shards}
        shards: list[int] = []
        for entry in self._gathered:
            shard = self._chosen_by_client(setups.get(entry.shard))
            if shard is None:
                # A leader that has restarted may have heard of an old configuration first. The
                # append may be acknowledged, so its records must not become no-ops for that.
                self.awaits_shard = entry.shard
                break
            shards.append(shard)
        return shards

    def _chosen_by_client(self, setup: ShardSetup | None) -> int | None:
        if setup is None:
            return None
        if setup.removed:
            return NO_SHARD
        return setup.number if setup.number in self._cursors else None

    def _choose(self) -> list[int]:
        """The shard with the fewest bytes under way; among equals the one that was given least."""
        loads = [
            (cursor.bytes_under_way, cursor.bytes_given, number)
            for number, cursor in self._cursors.items()
            if cursor.setup.open
        ]
        if not loads:
            return []
        heapify(loads)
        shards: list[int] = []
        for entry in self._gathered:
            under_way, given, shard = loads[0]
            heapreplace(loads, (under_way + entry.size, given + entry.size, shard))
            shards.append(shard)
        return shards

    def _cut(self, shards: Sequence[int]) -> RowGroup:
        """Bind what is gathered to positions, as far as there are shards for it and the group isn't
        full. In mode st little is gathered for much that shards store.
        """
        assert 0 < len(shards) <= len(self._gathered)
        position: Position = self._groups.end
        rows: list[Row] = []
        batches: dict[int, list[bytes]] = {}
        loads: dict[int, int] = {}
        waits_ms: list[Milliseconds] = []
        size = 0
        for entry, shard in zip(self._gathered, shards, strict=False):
            if size >= self._bounds.group_bytes:
                break
            size += entry.size
            rows.append(Row(position, entry.count, shard, entry.id))
            position += entry.count
            if shard != NO_SHARD:
                loads[shard] = loads.get(shard, 0) + entry.size
            if entry.shard:
                waits_ms.append(self._wait_ms(entry.id))
            if entry.batch:
                batches.setdefault(shard, []).append(entry.batch)
        del self._gathered[: len(rows)]
        self._gathered_bytes -= size
        assert self._gathered_bytes >= 0
        assert rows, "a group has rows"
        if len(set(waits_ms)) == 1:
            del waits_ms[1:]
        return RowGroup(rows, batches, loads, size, waits_ms)
