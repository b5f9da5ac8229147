"""The journal of a shard whose records are kept in a log of another system (decision 63)."""

import asyncio
import secrets
import time

from anabranch.apps.erwin.bolt_log import BoltLog
from anabranch.core.storage.black_box_address import BlackBoxAddress, BlackBoxKind
from anabranch.ports import BlackBox, RecordJournal
from anabranch.shell.journal.black_box import BlackBoxJournal
from anabranch.shell.journal.watermark import NotedRecordJournal, WatermarkFile

LIFE_BITS = 63


def open_journal(
    address: BlackBoxAddress,
    owner: str,
    note: WatermarkFile | None,
    kafka_file: str,
    loop: asyncio.AbstractEventLoop,
) -> RecordJournal:
    """For a thread: the journal of one shard, not recovered yet. Raises BadRequest if `kafka_file`
    can't be used.

    `address`: this shard's. `note`: where it is noted how far the journal went. `kafka_file`: says
    how Kafka is reached (`shell/kafka/access.py`).
    """
    mark = note.read() if note is not None else None
    life, box = 1 + secrets.randbits(LIFE_BITS), _open(address, kafka_file, loop)
    noted = mark.entry if mark is not None else 0
    journal = BlackBoxJournal(box, owner, life, noted=noted, now=time.monotonic)
    return journal if note is None else NotedRecordJournal(journal, note, time.monotonic)


def _open(address: BlackBoxAddress, kafka_file: str, loop: asyncio.AbstractEventLoop) -> BlackBox:
    if address.kind is BlackBoxKind.KAFKA:
        # Only a server that has such a log pays for the import of a client of Kafka.
        from anabranch.shell.kafka.access import KafkaAccess
        from anabranch.shell.kafka.topic import KafkaTopic

        access = KafkaAccess(address.servers, kafka_file)
        return KafkaTopic(loop, address.servers, address.name, access)
    return BoltLog(address.servers[0], address.name)
