"""`ports.BlackBox` over one topic of one partition (decision 63).

Records are acknowledged by all in-sync replicas (`acks=all`). The producer isn't an idempotent one:
a journal knows a record that comes twice, and goes on after a failure where such a producer's
sequence would be broken.
"""

# aiokafka's annotations are incomplete.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

import asyncio
import logging
import struct
from collections.abc import Coroutine, Sequence
from concurrent.futures import CancelledError
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from aiokafka.errors import ConsumerStoppedError, KafkaConnectionError, KafkaError

from anabranch.core.errors import BlackBoxFailed
from anabranch.shell.kafka.access import KafkaAccess
from anabranch.shell.kafka.fitness import check, prepare

REQUEST_MS = 10_000
"""After this an answer is taken for lost."""
CALL_S = 30.0
"""A call that does several requests fails after this."""
_LOOK_MS = 200
"""For one look whether a record lies before the end."""
BATCH_BYTES_MAX = 1_000_000
"""What a topic takes unless it is told to take more, with what Kafka adds."""

_FAILURES = (
    KafkaError,
    ConsumerStoppedError,
    OSError,
    CancelledError,
    ArithmeticError,
    LookupError,
    ValueError,
    struct.error,
)
"""Of the client. The last four: a server that can't be dialed, or that isn't Kafka, whose answers
make no sense.
"""

# What it would say once for each try is said once for each outage, where answers are awaited.
logging.getLogger("aiokafka").addHandler(logging.NullHandler())

T = TypeVar("T")


class KafkaTopic:
    """One topic. Its calls are for any thread but the one that runs `loop`."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        servers: Sequence[str],
        topic: str,
        access: KafkaAccess | None = None,
    ) -> None:
        self.where = f"Kafka topic {topic} at {','.join(servers)}"
        self._loop = loop
        self._access = access or KafkaAccess(servers)
        self._shown = self._access.current()
        """What the connections were opened with."""
        self._servers = list(servers)
        self._topic = topic
        self._partition = TopicPartition(topic, 0)
        self._producer: AIOKafkaProducer | None = None
        self._consumer: AIOKafkaConsumer | None = None
        self._admin: AIOKafkaAdminClient | None = None
        self._connecting = asyncio.Lock()
        self._reading = asyncio.Lock()
        self._next = -1
        """The position that the consumer fetches next; -1: another has to be sought."""
        self._found = False
        """It was there: one that is gone since is nobody's to make again."""
        self._begin = 0

    def bounds(self) -> tuple[int, int]:
        return self._run(self._bounds())

    @property
    def begin(self) -> int:
        return self._begin

    def look(self) -> tuple[int, int]:
        return self._run(self._look())

    def append(self, records: Sequence[bytes]) -> list[int]:
        return self._run(self._append(records))

    def read(self, start: int) -> list[tuple[int, bytes]]:
        return self._run(self._read(start))

    def trim(self, below: int) -> None:
        self._run(self._trim(below))

    def close(self) -> None:
        self._run(self._close())

    async def _bounds(self) -> tuple[int, int]:
        begin, end = await self._offsets()
        return begin, await self._behind_the_last(begin, end)

    async def _look(self) -> tuple[int, int]:
        """Its settings may be others since the start: Kafka would delete what they say."""
        _, _, admin = await self._connected()
        await check(admin, self._topic, self.where)
        return await self._offsets()

    async def _offsets(self) -> tuple[int, int]:
        _, consumer, _ = await self._connected()
        first = await consumer.beginning_offsets([self._partition])
        end = await consumer.end_offsets([self._partition])
        return first[self._partition], end[self._partition]

    async def _behind_the_last(self, begin: int, end: int) -> int:
        """The end without markers of transactions, which Kafka counts and no reader is given: who
        waited for a record up to there would wait for ever.
        """
        _, consumer, _ = await self._connected()
        back = 1
        async with self._reading:
            self._next = -1
            while end > begin:
                start = max(begin, end - back)
                consumer.seek(self._partition, start)
                last = -1
                while await consumer.position(self._partition) < end:
                    found = await consumer.getmany(self._partition, timeout_ms=_LOOK_MS)
                    last = max(
                        (each.offset for each in found.get(self._partition, ())), default=last
                    )
                if last >= start:
                    return min(last + 1, end)
                end, back = start, 2 * back
        return end

    async def _append(self, records: Sequence[bytes]) -> list[int]:
        """In as few batches as fit, one after the other."""
        assert records, "nothing is never appended"
        producer, _, _ = await self._connected()
        positions: list[int] = []
        waiting = list(records)
        while waiting:
            batch = producer.create_batch()
            count = 0
            for record in waiting:
                if batch.append(key=None, value=record, timestamp=None) is None:
                    break
                count += 1
            assert count, "a record fits a batch"
            batch.close()
            del waiting[:count]
            sent = await producer.send_batch(batch, self._topic, partition=0)
            done = await sent
            positions.extend(range(done.offset, done.offset + count))
            self._begin = max(0, done.log_start_offset or 0)
        return positions

    async def _read(self, start: int) -> list[tuple[int, bytes]]:
        _, consumer, _ = await self._connected()
        async with self._reading:
            if start != self._next:
                consumer.seek(self._partition, start)
            self._next = -1
            found = await consumer.getmany(self._partition, timeout_ms=REQUEST_MS)
            records = [
                (each.offset, bytes(each.value or b""))
                for each in found.get(self._partition, ())
                if each.offset >= start
            ]
            if not records:
                raise BlackBoxFailed(self.where, f"no record came from {start} on")
            self._next = records[-1][0] + 1
            return records

    async def _trim(self, below: int) -> None:
        _, _, admin = await self._connected()
        await admin.delete_records({self._partition: RecordsToDelete(before_offset=below)})

    async def _connected(self) -> tuple[AIOKafkaProducer, AIOKafkaConsumer, AIOKafkaAdminClient]:
        """Connect once; a client that got no connection is tried again with the next call. A
        certificate or a password that was renewed takes new connections.
        """
        async with self._connecting:
            access = self._shown
            if self._access.changes:
                access = await asyncio.to_thread(self._access.current)
            if access is not self._shown:
                await self._disconnect()
                self._shown = access
            common: dict[str, Any] = {
                "bootstrap_servers": self._servers,
                "request_timeout_ms": REQUEST_MS,
                **access,
            }
            if self._admin is None:
                admin = AIOKafkaAdminClient(**common)
                async with AsyncExitStack() as failing:
                    failing.push_async_callback(admin.close)
                    await admin.start()
                    await prepare(admin, self._topic, self.where, may_create=not self._found)
                    failing.pop_all()
                self._admin, self._found = admin, True
            if self._producer is None:
                self._producer = await _started(
                    AIOKafkaProducer(acks="all", max_batch_size=BATCH_BYTES_MAX, **common)
                )
            if self._consumer is None:
                consumer = AIOKafkaConsumer(
                    group_id=None, enable_auto_commit=False, auto_offset_reset="none", **common
                )
                self._consumer = await _started(consumer)
                self._consumer.assign([self._partition])
            return self._producer, self._consumer, self._admin

    async def _close(self) -> None:
        async with self._connecting:
            await self._disconnect()

    async def _disconnect(self) -> None:
        producer, self._producer = self._producer, None
        consumer, self._consumer = self._consumer, None
        admin, self._admin = self._admin, None
        self._next = -1
        if producer is not None:
            await producer.stop()
        if consumer is not None:
            await consumer.stop()
        if admin is not None:
            await admin.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        running = asyncio.run_coroutine_threadsafe(_bounded(work), self._loop)
        try:
            return running.result()
        except _FAILURES as error:
            raise BlackBoxFailed(self.where, _reason(error)) from error


def _reason(error: BaseException) -> str:
    """Why a call failed, in words that an operator can act on."""
    if isinstance(error, KafkaConnectionError) and "bootstrap" in str(error):
        return "none of these servers answers as Kafka does"
    # Kafka's client ends its messages with a full stop, and so does ours here.
    return str(error).rstrip(".") or type(error).__name__


async def _bounded(work: Coroutine[Any, Any, T]) -> T:
    async with asyncio.timeout(CALL_S):
        return await work


C = TypeVar("C", AIOKafkaProducer, AIOKafkaConsumer)


async def _started(client: C) -> C:
    async with AsyncExitStack() as failing:
        failing.push_async_callback(client.stop)
        await client.start()
        failing.pop_all()
    return client
