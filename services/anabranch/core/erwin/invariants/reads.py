"""What shards answer to readers: what is stable, all of it, always the same (E5, E7, E9)."""

from anabranch.core.erwin.invariants.known_rows import KnownRows
from anabranch.core.erwin.invariants.order import Order, Violated, spans
from anabranch.core.erwin.protocol.letters import Configuration, Push, Pushed
from anabranch.core.erwin.protocol.messages import Delivered, Read, Records, Subscribe
from anabranch.core.erwin.protocol.rows import NO_SHARD, Row
from anabranch.core.records.batch import peek
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.types import Position


class Reads:
    """Follows every read and every subscription."""

    def __init__(self, order: Order, violated: Violated) -> None:
        self.contents: dict[AppendId, bytes] = {}
        """What the batch of each id was read as: empty for no-ops."""
        self._order = order
        self._violated = violated
        self._starts: dict[tuple[str, int], Position] = {}
        """By node and token: where a read begins, or a subscription goes on."""
        self._shards: dict[str, tuple[int, str]] = {}
        """By node: number and name of its shard."""
        self._names: dict[int, str] = {}
        self._known = KnownRows()

    def configured(self, configuration: Configuration) -> None:
        for shard in configuration.shards:
            self._names[shard.number] = shard.name
            for node in shard.nodes:
                self._shards[node] = shard.number, shard.name

    def pushed(self, to: str, push: Push) -> None:
        """A leader pushes to the primary of a shard."""
        assert to, "a letter is for somebody"
        if to in self._shards:
            number, _ = self._shards[to]
            self._known.pushed(number, push)

    def held(self, answer: Pushed) -> None:
        """A shard says what it holds."""
        self._known.answered(answer)

    def asked(self, node: str, token: int, message: Read | Subscribe) -> None:
        self._starts[node, token] = message.start

    def answered(self, node: str, token: int, records: Records) -> None:
        start = self._starts.pop((node, token), None)
        if start is None:
            self._violated("E5", f"{node} answers {token}, which nobody asked")
            return
        if records.stable > self._order.stable:
            says = f"{node} calls {records.stable} stable, which is {self._order.stable}"
            self._violated("E5", says)
        if not start <= records.upto <= max(start, records.stable):
            says = f"{node} answers from {start} to {records.upto}, stable is {records.stable}"
            self._violated("E5", says)
            return
        self._batches(node, start, records)
        self._elsewhere(node, start, records)

    def _elsewhere(self, node: str, start: Position, records: Records) -> None:
        """Every position of other shards is named, and those of nobody are left out. What came
        before a shard was added it knows nothing of, and names any shard that knows better.
        """
        number, _ = self._shards[node]
        rows = self._order.between(start, records.upto)
        told = 0
        for span in records.elsewhere:
            told += span.count
            for row in self._order.between(span.first, span.first + span.count):
                if self._known.has(number, row) and self._name(row) != span.shard:
                    self._violated("E5", f"{node} says that {span.shard} has {row}")
        named = [row for row in rows if not self._shows(number, row)]
        if told != spans(named, start, records.upto):
            says = f"{node} names {told} positions of other shards from {start} to {records.upto}"
            self._violated("E5", says)

    def delivered(self, node: str, token: int, records: Delivered) -> None:
        start = self._starts.get((node, token))
        if start is None or records.upto < start:
            self._violated("E5", f"{node} delivers up to {records.upto} where {start} was due")
            return
        self._starts[node, token] = records.upto
        self._batches(node, start, records)

    def _batches(self, node: str, start: Position, records: Records | Delivered) -> None:
        """All rows of this shard in this range are there, with their one content."""
        if records.upto > max(start, self._order.stable):
            says = f"{node} answers up to {records.upto}, stable is {self._order.stable}"
            self._violated("E5", says)
            return
        number, _ = self._shards[node]
        rows = [row for row in self._order.between(start, records.upto) if self._shows(number, row)]
        shown = list(zip(records.firsts, records.counts, strict=True))
        if shown != [(row.first, row.count) for row in rows]:
            says = f"{node} shows {shown} from {start} to {records.upto}, where {rows} are"
            self._violated("E5", says)
            return
        for row, batch in zip(rows, records.batches, strict=True):
            self._content(node, row, bytes(batch))

    def _shows(self, number: int, row: Row) -> bool:
        """Does the shard answer this row itself? Rows of nobody are shown by all that know them."""
        return row.shard == number or (row.shard == NO_SHARD and self._known.has(number, row))

    def _content(self, node: str, row: Row, batch: bytes) -> None:
        if batch and AppendId.of(peek(batch)) != row.id:
            self._violated("E7", f"{node} shows another append at {row}")
        if self.contents.setdefault(row.id, batch) != batch:
            self._violated("E4", f"{node} shows another content of {row} than was read before")

    def _name(self, row: Row) -> str:
        return self._names.get(row.shard, "")
