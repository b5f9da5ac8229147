"""How a topic fails: as a black box does, whatever was wrong."""

import asyncio

import pytest

from anabranch.core.errors import BlackBoxFailed
from anabranch.shell.kafka.topic import KafkaTopic


def test_servers_of_which_none_answers_are_named_without_the_client_s_own_types() -> None:
    async def fail() -> None:
        topic = KafkaTopic(asyncio.get_running_loop(), ["127.0.0.1:1"], "clicks-0")
        with pytest.raises(BlackBoxFailed, match="clicks-0") as failed:
            await asyncio.to_thread(topic.bounds)
        assert "failed: none of these servers answers as Kafka does." in failed.value.message
        await asyncio.to_thread(topic.close)

    asyncio.run(fail())


@pytest.mark.parametrize("server", ["127.0.0.1:65536", "a..b:9092", "127.0.0.1:0"])
def test_a_server_that_cannot_be_dialed_is_a_failure_of_the_black_box(server: str) -> None:
    async def fail() -> None:
        topic = KafkaTopic(asyncio.get_running_loop(), [server], "clicks-0")
        with pytest.raises(BlackBoxFailed, match="clicks-0") as failed:
            await asyncio.to_thread(topic.bounds)
        assert ".." not in failed.value.message.replace(server, "")
        await asyncio.to_thread(topic.close)

    asyncio.run(fail())
