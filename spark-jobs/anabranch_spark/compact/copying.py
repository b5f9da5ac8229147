"""Make one copy: fetch the extents, prove that they are what was committed, lay them out."""

from collections import deque
from collections.abc import Iterator

from anabranch import ScanPlan
from anabranch.client.bolt.compactors import CopyOrder
from anabranch.core.bolt.protocol.compaction import Copied
from anabranch.core.records.batch import split, verify
from anabranch.core.records.objects import ObjectName, lay_out
from anabranch.core.records.set_sum import UNKNOWN, set_sum
from anabranch.errors import AnabranchError
from anabranch_spark.source.cuts import groups
from anabranch_spark.source.fetch import CutShort, Fetcher, ObjectGone, UrlRefused

SIGNED_TOGETHER = 256
"""Extents that are signed with one request."""
SIGNED_BYTES = 32 << 20


class Damaged(Exception):
    """An extent isn't what the service says was committed; two reads agreed on it."""


class Away(Exception):
    """The store doesn't take a URL that was just signed."""


def copied(order: CopyOrder, plan: ScanPlan, fetcher: Fetcher, cluster: str) -> bytes:
    """The whole object. Damaged if the extents can't be copied; what is damaged on its way is read
    a second time.
    """
    batches: list[memoryview] = []
    for extent, content in _contents(order, plan, fetcher):
        found = _proved(extent, content)
        if isinstance(found, str):
            turn = order.extents.index(extent)
            one = CopyOrder(order.log, [extent], [1], [order.seals[turn]])
            ((_, again),) = _contents(one, plan, fetcher)
            found = _proved(extent, again)
        if isinstance(found, str):
            name = ObjectName.of(cluster, extent.object)
            raise Damaged(f"the extent at position {extent.first}, in object {name}: {found}")
        batches += found
    parts, _ = lay_out(cluster, [(order.log, batches)])
    return b"".join(parts)


def _contents(
    order: CopyOrder, plan: ScanPlan, fetcher: Fetcher
) -> Iterator[tuple[Copied, memoryview | str]]:
    """Each extent with its bytes, or why there are none, in order."""
    waiting = deque(order.extents)
    for group in groups(order.slices, slices_max=SIGNED_TOGETHER, bytes_max=SIGNED_BYTES):
        for place, content, fault in fetcher.each(plan.sign(group)):
            if isinstance(fault, UrlRefused):
                raise Away(str(fault))
            view, end = memoryview(content), place.offset + place.length
            while waiting and _lies_in(waiting[0], place.object, place.offset, end):
                extent = waiting.popleft()
                at = extent.offset - place.offset
                yield extent, _missing(fault) or view[at : at + extent.length]
    assert not waiting, "every extent is in a range that was signed"


def _missing(fault: ObjectGone | CutShort | None) -> str:
    return "" if fault is None else str(fault)


def _proved(extent: Copied, content: memoryview | str) -> list[memoryview] | str:
    """The batches of an extent, or what is wrong with it."""
    if isinstance(content, str):
        return content
    batches: list[memoryview] = []
    records = 0
    try:
        for at, length, header in split(content):
            batch = content[at : at + length]
            verify(batch, "")
            batches.append(batch)
            records += header.count
    except AnabranchError as error:
        return str(error.facts.get("reason") or error.message)
    if records != extent.count:
        return f"{extent.count} records were committed, and {records} are there"
    if extent.sum not in (UNKNOWN, set_sum(batches)):
        return "sound batches, but others than were committed"
    return batches


def _lies_in(extent: Copied, object: int, offset: int, end: int) -> bool:
    return (
        extent.object == object and offset <= extent.offset and extent.offset + extent.length <= end
    )
