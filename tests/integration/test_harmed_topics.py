"""A Kafka topic that others harm while a shard's journal is in it (decision 63)."""

# aiokafka's annotations are incomplete.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from benchmarks.peers.kafka import server as kafka_server

from anabranch.core.errors import AnabranchError, BlackBoxChanged, BlackBoxUnfit
from anabranch.shell.journal.black_box import BlackBoxJournal
from anabranch.shell.kafka.fitness import WANTED, prepare
from anabranch.shell.kafka.topic import KafkaTopic

Harm = Callable[[AIOKafkaAdminClient, str, str], Awaitable[None]]
ENTRIES = [b"a", b"b", b"c"]


async def trim(admin: AIOKafkaAdminClient, topic: str, server: str) -> None:
    assert server
    await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=3)})


async def expire(admin: AIOKafkaAdminClient, topic: str, server: str) -> None:
    assert server
    settings = {**WANTED, "retention.ms": "86400000"}
    await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, settings)])


async def delete(admin: AIOKafkaAdminClient, topic: str, server: str) -> None:
    assert server
    await admin.delete_topics([topic])
    async with asyncio.timeout(30):
        while True:
            if topic not in await admin.list_topics():
                return
            await asyncio.sleep(0.05)


async def make_again(admin: AIOKafkaAdminClient, topic: str, server: str) -> None:
    """With as many records as there were: the opening of the journal, and its entries."""
    await delete(admin, topic, server)
    await prepare(admin, topic, "a test", may_create=True)
    async with AIOKafkaProducer(bootstrap_servers=server, acks="all") as producer:
        for _ in range(1 + len(ENTRIES)):
            await producer.send_and_wait(topic, b"theirs", partition=0)


HARMS: Sequence[tuple[str, Harm, type[AnabranchError], list[bytes]]] = (
    ("looked-trimmed", trim, BlackBoxChanged, []),
    ("told-trimmed", trim, BlackBoxChanged, [b"d"]),
    ("expiring", expire, BlackBoxUnfit, []),
    ("gone", delete, BlackBoxChanged, []),
    ("other", make_again, BlackBoxChanged, []),
)


@pytest.mark.skipif(
    kafka_server.obstacle() is not None, reason=f"no Kafka: {kafka_server.obstacle()}"
)
@pytest.mark.nightly
def test_what_others_do_to_a_topic_is_noticed_before_anything_else_is_acknowledged(
    tmp_path: Path,
) -> None:
    async def story(server: str) -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=server)
        await admin.start()
        for name, harm, error, more in HARMS:
            topic = KafkaTopic(asyncio.get_running_loop(), [server], name)
            journal = BlackBoxJournal(topic, "audit", 1, now=lambda: 0.0)
            await asyncio.to_thread(journal.recover)
            assert await asyncio.to_thread(journal.append, ENTRIES) == len(ENTRIES)
            assert await asyncio.to_thread(journal.append, []) == len(ENTRIES)
            await harm(admin, name, server)
            with pytest.raises(error):
                await asyncio.to_thread(journal.append, more)
            await asyncio.to_thread(topic.close)
        await admin.close()

    with kafka_server.running(tmp_path / "kafka") as kafka:
        asyncio.run(story(kafka.address))
