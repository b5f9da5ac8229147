"""Whether a topic may keep a log's records: it must keep them until the log trims them."""

# aiokafka's annotations are incomplete.
# pyright: reportMissingTypeStubs=false

from collections.abc import Mapping
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from anabranch.core.errors import BlackBoxChanged, BlackBoxFailed, BlackBoxUnfit
from anabranch.core.storage.black_box import PART_BYTES_MAX

WANTED = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
"""What a topic is created with, and must have."""
_RECORD_BYTES_MAX = PART_BYTES_MAX + 256 * 1024
REPLICAS_MAX = 3
"""Of a topic that is created here; fewer where there are fewer brokers."""
_UNKNOWN = 3
"""The error code of a topic that isn't there."""
_EXISTS = 36
"""The error code of a topic that is there."""


async def prepare(admin: AIOKafkaAdminClient, topic: str, where: str, *, may_create: bool) -> None:
    """Create the topic if it isn't there. Raises BlackBoxUnfit if it can't be used, and
    BlackBoxChanged if it isn't there and mustn't be created: it was there before.
    """
    if may_create and topic not in await admin.list_topics():
        await _create(admin, topic, where)
    try:
        await check(admin, topic, where)
    except BlackBoxChanged:
        if may_create:
            raise BlackBoxFailed(where, "its servers don't all know the topic yet") from None
        raise


async def check(admin: AIOKafkaAdminClient, topic: str, where: str) -> None:
    """Raises BlackBoxUnfit if the topic can't be used, and BlackBoxChanged if it is gone."""
    described = (await admin.describe_topics([topic]))[0]
    if described["error_code"] == _UNKNOWN:
        raise BlackBoxChanged(where, "it was deleted")
    partitions = described["partitions"]
    if len(partitions) != 1:
        reason = f"a log has one order, and the topic has {len(partitions)} partitions"
        raise BlackBoxUnfit(where, reason)
    reason = unfit(await _configured(admin, topic))
    if reason is not None:
        raise BlackBoxUnfit(where, reason)


def unfit(configured: Mapping[str, str]) -> str | None:
    """Why a topic that is so configured can't be used."""
    for name, wanted in WANTED.items():
        if configured.get(name, wanted) != wanted:
            return (
                f"its {name} is {configured[name]}, so that Kafka would delete records that the "
                f"log needs: set it to {wanted}"
            )
    most = int(configured.get("max.message.bytes", _RECORD_BYTES_MAX))
    if most < _RECORD_BYTES_MAX:
        return f"its max.message.bytes is {most}: set it to {_RECORD_BYTES_MAX} at least"
    return None


async def _create(admin: AIOKafkaAdminClient, topic: str, where: str) -> None:
    brokers = len((await admin.describe_cluster())["brokers"])
    new = NewTopic(topic, 1, max(1, min(REPLICAS_MAX, brokers)), topic_configs=WANTED)
    answer: Any = await admin.create_topics([new])
    for _, code, *said in answer.topic_errors:
        if code not in (0, _EXISTS):
            raise BlackBoxFailed(where, f"it can't be created: {said[0] if said else code}")


async def _configured(admin: AIOKafkaAdminClient, topic: str) -> dict[str, str]:
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    answers: list[Any] = await admin.describe_configs([resource])
    found: dict[str, str] = {}
    for answer in answers:
        for code, _, _, _, entries in answer.resources:
            if code == 0:
                found.update({entry[0]: entry[1] for entry in entries})
    return found
