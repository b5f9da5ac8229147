"""The records that Spark reads, in the very batches that both systems get."""

import asyncio
import random
from collections.abc import Iterator

from aiokafka import AIOKafkaProducer
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from msgspec import Struct
from msgspec.structs import replace

import anabranch
from anabranch.core.records.record import decode

BATCH_BYTES = 256 * 1024
"""The size that a busy producer fills its batches to."""
KEY_BYTES = 16
_CODECS = {"": 0, "zstd": 4}
_SEED = 7
_WORDS = 2_000
_DISTINCT = 32
"""Batches that are made; the log repeats them, since only their bytes count here."""


class Shape(Struct, frozen=True):
    """Records of one size."""

    name: str
    value_bytes: int
    total_bytes: int
    """Bytes of keys and values."""
    codec: str = ""

    @property
    def log(self) -> str:
        """The name of the log or topic that holds them."""
        return self.name.lower().replace(" ", "-").replace(",", "")

    def small(self) -> "Shape":
        """As few as show that a benchmark runs."""
        return replace(self, total_bytes=2_000_000)


def batches(shape: Shape) -> Iterator[tuple[bytes, int]]:
    """Whole batches of Kafka's format with their number of records."""
    made = [_batch(shape, seed) for seed in range(_DISTINCT)]
    remaining = records(shape)
    while remaining > 0:
        for batch, count in made:
            yield batch, count
            remaining -= count
            if remaining <= 0:
                return


def records(shape: Shape) -> int:
    """The least number of records; the last batch is whole."""
    return shape.total_bytes // (shape.value_bytes + KEY_BYTES)


def _batch(shape: Shape, seed: int) -> tuple[bytes, int]:
    chance = random.Random(_SEED + seed)
    # Values that compress about as logs do: words, and some of them rare.
    words = [chance.randbytes(5).hex().encode() for _ in range(_WORDS)]
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=_CODECS[shape.codec],
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=2 * BATCH_BYTES,
    )
    count = BATCH_BYTES // (shape.value_bytes + KEY_BYTES)
    for number in range(count):
        text = b" ".join(chance.choices(words, k=shape.value_bytes // 11 + 1))
        key = b"%016d" % (seed * count + number)
        value = text[: shape.value_bytes]
        builder.append(number, 1_700_000_000_000 + number, key, value, headers=[])
    return bytes(builder.build()), count


def fill(log: anabranch.Log, shape: Shape) -> tuple[int, int]:
    """Append them, and return the number of records and their bytes of keys and values."""
    count = 0
    for batch, number in batches(shape):
        log.append_batch(batch)
        count += number
    return count, count * (shape.value_bytes + KEY_BYTES)


async def fill_kafka(address: str, topic: str, shape: Shape) -> None:
    """The same records, in batches of the same sizes, in one partition."""
    compression = shape.codec or None
    producer = AIOKafkaProducer(
        bootstrap_servers=address,
        compression_type=compression,
        max_batch_size=2 * BATCH_BYTES,
        max_request_size=4 * BATCH_BYTES,
    )
    await producer.start()
    try:
        sent: list[asyncio.Future[object]] = []
        for batch, _ in batches(shape):
            builder = producer.create_batch()
            for each in _decoded(batch):
                builder.append(timestamp=each[0], key=each[1], value=each[2], headers=[])
            builder.close()
            sent.append(await producer.send_batch(builder, topic, partition=0))
            if len(sent) >= 8:
                await asyncio.gather(*sent)
                sent.clear()
        await asyncio.gather(*sent)
    finally:
        await producer.stop()


def _decoded(batch: bytes) -> Iterator[tuple[int, bytes | None, bytes | None]]:
    for record in decode(batch):
        yield record.timestamp, record.key, record.value
