"""A word count whose workers keep their state in a shared log (LazyLog, 6.11).

A worker reads a batch of lines, counts their words, appends a checkpoint, and emits the counts only
when the log has it. A worker that takes another one's place replays the checkpoints, emits the last
batch once more in case its predecessor died just before, and goes on behind it. The sink knows
batches by their numbers, so each counts once.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

import msgspec
from examples.erwin.shared_log import SharedLog

from anabranch.core.types import Position

VOCABULARY = 5_000
WORDS_A_LINE = 8


class Checkpoint(msgspec.Struct, frozen=True):
    """A worker's progress: one batch of its source, and the words that were in it."""

    worker: int
    batch: int
    next_line: int
    counts: dict[str, int]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Checkpoint)


class Sink:
    """The next stage: takes each batch of each worker once."""

    def __init__(self) -> None:
        self.totals: Counter[str] = Counter()
        self._batches: dict[int, int] = {}

    def emit(self, checkpoint: Checkpoint) -> None:
        taken = self._batches.get(checkpoint.worker, 0)
        assert checkpoint.batch <= taken + 1, "a worker emits its batches in order"
        if checkpoint.batch == taken + 1:
            self.totals.update(checkpoint.counts)
            self._batches[checkpoint.worker] = checkpoint.batch


@dataclass(slots=True)
class Worker:
    """Counts the words of one source."""

    log: SharedLog
    number: int
    source: Sequence[str]
    batch_lines: int
    sink: Sink
    latencies: list[float] = field(default_factory=list[float])
    """Seconds from reading a batch to emitting it."""
    _batch: int = 0
    _next_line: int = 0

    @property
    def batch(self) -> int:
        """The batch that this worker has checkpointed last; 0 before its first."""
        return self._batch

    async def recover(self, start: Position) -> None:
        """Go on behind the last checkpoint of this worker in the log from `start` on."""
        last: Checkpoint | None = None
        for _, value in await self.log.read(start):
            checkpoint = _decoder.decode(value)
            # A predecessor that wasn't dead after all may have appended a batch once more: the
            # first in the log's order counts, and a later one says the same.
            if checkpoint.worker == self.number and checkpoint.batch == self._batch + 1:
                last = checkpoint
                self._batch, self._next_line = checkpoint.batch, checkpoint.next_line
        if last is not None:
            self.sink.emit(last)

    async def run(self, batches: int | None = None) -> None:
        """Work to the end of the source, or through so many batches."""
        now = asyncio.get_running_loop().time
        while self._next_line < len(self.source) and batches != 0:
            began = now()
            checkpoint = self._count()
            await self.log.append(_encoder.encode(checkpoint))
            self._batch, self._next_line = checkpoint.batch, checkpoint.next_line
            self.sink.emit(checkpoint)
            self.latencies.append(now() - began)
            batches = None if batches is None else batches - 1

    def _count(self) -> Checkpoint:
        end = min(len(self.source), self._next_line + self.batch_lines)
        counts: Counter[str] = Counter()
        for line in self.source[self._next_line : end]:
            counts.update(line.split())
        return Checkpoint(self.number, self._batch + 1, end, dict(counts))


@dataclass(frozen=True, slots=True)
class Text:
    """What is counted, by how many workers, in batches of how many lines."""

    lines: int
    workers: int = 5
    batch_lines: int = 500
    seed: int = 1

    def sources(self) -> list[list[str]]:
        """Lines of words, of which some are far more frequent than others, for each worker."""
        rng = Random(self.seed)
        words = [f"word{rank}" for rank in range(1, VOCABULARY + 1)]
        weights = [1 / rank for rank in range(1, VOCABULARY + 1)]
        return [
            [
                " ".join(rng.choices(words, weights, k=WORDS_A_LINE))
                for _ in range(number, self.lines, self.workers)
            ]
            for number in range(self.workers)
        ]


async def play(log: SharedLog, start: Position, text: Text) -> list[str]:
    """Count a text, replace every worker in the middle of its work, and return what was wrong."""
    sink, sources = Sink(), text.sources()
    wrong: list[str] = []

    async def counted(number: int) -> None:
        source = sources[number]
        half = max(1, len(source) // text.batch_lines // 2)
        predecessor = Worker(log, number, source, text.batch_lines, sink)
        await predecessor.run(half)
        successor = Worker(log, number, source, text.batch_lines, sink)
        await successor.recover(start)
        if successor.batch != predecessor.batch:
            wrong.append(
                f"worker {number} found {successor.batch} checkpoints in the log, and its "
                f"predecessor had appended {predecessor.batch}"
            )
        await successor.run()

    async with asyncio.TaskGroup() as workers:
        for number in range(text.workers):
            workers.create_task(counted(number))
    expected = Counter(word for source in sources for line in source for word in line.split())
    if sink.totals != expected:
        wrong.append("the counts aren't those of the text")
    return wrong + check([value for _, value in await log.read(start)], text, expected)


def check(logged: Sequence[bytes], text: Text, expected: Counter[str]) -> list[str]:
    """The log holds each batch of each worker once, in order, and they add up to the text's counts.

    Only for workers of which none goes on beside its successor.
    """
    wrong: list[str] = []
    totals: Counter[str] = Counter()
    batches = dict.fromkeys(range(text.workers), 0)
    for checkpoint in map(_decoder.decode, logged):
        totals.update(checkpoint.counts)
        batches[checkpoint.worker] += 1
        if checkpoint.batch != batches[checkpoint.worker]:
            wrong.append(
                f"checkpoint {batches[checkpoint.worker]} of worker {checkpoint.worker} in the log "
                f"is that of batch {checkpoint.batch}"
            )
    if totals != expected:
        wrong.append("the checkpoints in the log don't add up to the text's counts")
    return wrong
