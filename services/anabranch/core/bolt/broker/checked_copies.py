"""Is an object the copy of these extents? Judged from all of its bytes.

The sums are those of what was read here, extent by extent; the metadata compare them with what was
committed. They don't tell in which order the batches of one extent lie, and were never meant to
stop somebody who forges checksums: who may write copies may run the pool (decision 83).
"""

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from anabranch.core.bolt.protocol.compaction import Copied, Joined
from anabranch.core.bolt.protocol.compactors import AdoptCopy
from anabranch.core.errors import AnabranchError
from anabranch.core.limits import KIB, Limits
from anabranch.core.machine import Buffer
from anabranch.core.records.batch import split, verify
from anabranch.core.records.objects import lay_out
from anabranch.core.records.set_sum import UNKNOWN, set_sum

FOOTER_BYTES_MAX = 4 * KIB
"""The footer of an object with one log, whatever the cluster is called."""


class CheckedCopy(msgspec.Struct, frozen=True):
    """What was read, or why it isn't the copy."""

    extents: list[Copied]
    """Those that were copied, each with the sum that was read."""
    joined: list[Joined]
    fault: str = ""


def copy_bytes_max(limits: Limits) -> int:
    return limits.object_bytes_max + FOOTER_BYTES_MAX


def check_copy(cluster: str, message: AdoptCopy, content: Buffer) -> CheckedCopy:
    """The batches of all extents one after the other, each whole, then the footer that says so."""
    fault = _misfit(message)
    if not fault and len(content) != message.size:
        fault = f"{len(content)} bytes came where {message.size} were named"
    if fault:
        return CheckedCopy([], [], fault)
    view = memoryview(content)
    size = sum(each.length for each in message.extents)
    batches: list[Buffer] = []
    extents: list[Copied] = []
    try:
        for each, part in _parts(view, message.extents):
            found, records = _batches(part)
            batches += found
            total = set_sum(found)
            if records != each.count:
                return CheckedCopy([], [], f"other records at position {each.first}")
            if each.sum not in (UNKNOWN, total):
                return CheckedCopy([], [], f"other batches at position {each.first}")
            extents.append(replace(each, sum=total))
        parts, _ = lay_out(cluster, [(message.log, batches)])
    except (AnabranchError, AssertionError) as error:
        return CheckedCopy([], [], f"its batches are damaged: {error}")
    if bytes(view[size:]) != b"".join(parts[len(batches) :]):
        return CheckedCopy([], [], "its footer isn't that of these extents")
    return CheckedCopy(extents, [*joined_extents(message.extents, message.joined)])


def joined_extents(extents: Sequence[Copied], joined: Sequence[int]) -> Iterator[Joined]:
    """Where the extents lie in an object that holds them one behind the other."""
    assert sum(joined) <= len(extents), "each extent is of one part"
    lengths = iter([each.length for each in extents])
    offset = 0
    for together in joined:
        length = sum(next(lengths, 0) for _ in range(together))
        yield Joined(together, offset, length)
        offset += length


def _misfit(message: AdoptCopy) -> str:
    """Why no object can be this copy."""
    if not message.extents or any(each <= 0 for each in message.joined):
        return "it names no extents"
    if sum(message.joined) != len(message.extents):
        return "the new extents aren't made of the old ones"
    if any(each.length <= 0 or each.count <= 0 for each in message.extents):
        return "an extent without a byte or a record"
    return ""


def _parts(content: memoryview, extents: Sequence[Copied]) -> Iterator[tuple[Copied, memoryview]]:
    assert extents, "a copy has an extent at least"
    at = 0
    for each in extents:
        yield each, content[at : at + each.length]
        at += each.length


def _batches(content: memoryview) -> tuple[list[Buffer], int]:
    """All of them, and their records. Raises Mistake where one isn't whole."""
    found: list[Buffer] = []
    records = 0
    for at, length, header in split(content):
        batch = content[at : at + length]
        verify(batch, "")
        found.append(batch)
        records += header.count
    return found, records
