"""An analysis, through aiokafka: a topic read in bulk, over and over; a worker."""

from aiokafka import AIOKafkaConsumer, TopicPartition

from benchmarks.cluster.scan import Done, Plan
from benchmarks.cluster.worker import Tell, Turn, serve
from benchmarks.timing import now

MODULE = "benchmarks.peers.kafka.scan"
PAGE_BYTES = 1 << 20
"""As our client asks for."""

_NS = 1_000_000_000


async def work(plan: Plan, turn: Turn, tell: Tell) -> None:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=plan.address, max_partition_fetch_bytes=PAGE_BYTES
    )
    partition = TopicPartition(plan.log, 0)
    await consumer.start()
    consumer.assign([partition])
    try:
        while await turn():
            began, count, at = now(), 0, plan.records
            ends = began + int(plan.seconds * _NS)
            while now() < ends:
                if at >= plan.records:
                    consumer.seek(partition, 0)
                    at = 0
                found = await consumer.getmany(partition, timeout_ms=1_000)
                for records in found.values():
                    count, at = count + len(records), records[-1].offset + 1
            tell(Done(records_per_s=count / (now() - began) * _NS))
    finally:
        await consumer.stop()


if __name__ == "__main__":
    serve(Plan, work)
