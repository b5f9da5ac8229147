"""Appends under a request id of the caller's: whole batches, each done once however often it is
asked for, also by another client object (decision 38).
"""

from collections.abc import Sequence

from anabranch.client.bolt.call import Call
from anabranch.client.bolt.link import Link
from anabranch.client.bolt.receipts import Receipt, placed
from anabranch.client.bolt.refusals import hold_ms
from anabranch.client.session.pledge import stamp
from anabranch.client.session.records import Appended
from anabranch.core.bolt.protocol import messages
from anabranch.core.errors import BadRequest, Refresh, UnknownLog
from anabranch.core.producers import REQUEST_EPOCH, request_identity
from anabranch.core.records.batch import verify
from anabranch.core.records.record import Record, encode
from anabranch.core.types import NOWHERE, LogId, Milliseconds


async def append_records(
    link: Link,
    log: LogId,
    name: str,
    records: Sequence[Record],
    request_id: str,
    timeout_ms: Milliseconds,
) -> list[Appended[Receipt]]:
    """All of them in one batch, or none."""
    if not records:
        raise BadRequest("an append under a request id", "there is no record")
    session = link.session
    for each in records:
        session.check_record(each.size)
    batch = encode(
        records,
        session.settings.codec,
        producer_id=request_identity(name, request_id),
        producer_epoch=REQUEST_EPOCH,
        base_sequence=0,
        now=link.now_ms(),
    )
    done = await _send(link, log, name, batch, len(records), request_id, timeout_ms)
    return [placed(link, done, index) for index in range(len(records))]


async def append_batch(
    link: Link, log: LogId, name: str, batch: bytes, request_id: str, timeout_ms: Milliseconds
) -> Appended[Receipt]:
    """Of its first record."""
    count = verify(batch, "to be appended").count
    identity = request_identity(name, request_id)
    stamped = stamp(batch, identity, REQUEST_EPOCH, 0)
    return placed(link, await _send(link, log, name, stamped, count, request_id, timeout_ms), 0)


async def append_by_name(
    link: Link, name: str, records: Sequence[Record], request_id: str, timeout_ms: Milliseconds
) -> list[Appended[Receipt]]:
    """To the log that has this name now. What was done before is told also if no log has."""
    try:
        what = f"look up {name}"
        found = await link.ask(messages.Describe(name), messages.Description, what, timeout_ms)
    except (Refresh, UnknownLog) as gone:
        try:
            return await append_records(link, NOWHERE, name, records, request_id, timeout_ms)
        except UnknownLog:
            raise gone from None
    return await append_records(link, found.id, found.name, records, request_id, timeout_ms)


async def _send(
    link: Link,
    log: LogId,
    name: str,
    batch: bytes,
    count: int,
    request_id: str,
    timeout_ms: Milliseconds,
) -> messages.Appended:
    link.session.check_batch(len(batch), count)
    held_ms = hold_ms(timeout_ms, timeout_ms)
    what = f"append to {name}"
    message = messages.Append(log, batch, held_ms)
    call = Call(message, what, timeout_ms - held_ms, held_ms, request_id=request_id)
    link.put(call)
    return await link.answered(call, messages.Appended)
