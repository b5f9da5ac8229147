"""The latency-critical workload on a topic, through aiokafka: a worker."""

from collections.abc import AsyncIterator

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from benchmarks.cluster.paced import Plan, carry_out
from benchmarks.cluster.worker import Tell, Turn, serve

MODULE = "benchmarks.peers.kafka.critical"


class _Stream:
    def __init__(self, producer: AIOKafkaProducer, consumer: AIOKafkaConsumer, topic: str) -> None:
        self._producer, self._consumer, self._topic = producer, consumer, topic

    async def append(self, value: bytes) -> object:
        return await self._producer.send_and_wait(self._topic, value)

    async def values(self) -> AsyncIterator[bytes]:
        partition = TopicPartition(self._topic, 0)
        self._consumer.assign([partition])
        await self._consumer.seek_to_end(partition)
        async for record in self._consumer:
            yield record.value or b""


async def work(plan: Plan, turn: Turn, tell: Tell) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=plan.address, acks="all", linger_ms=0)
    consumer = AIOKafkaConsumer(bootstrap_servers=plan.address)
    await producer.start()
    await consumer.start()
    try:
        await carry_out(_Stream(producer, consumer, plan.log), plan, turn, tell)
    finally:
        await consumer.stop()
        await producer.stop()


if __name__ == "__main__":
    serve(Plan, work)
