"""Receipts as text, entries as journals keep them, and what is done twice if it is sent twice."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.core.bolt.protocol.commands import (
    CreateLog,
    Entry,
    Guarded,
    Receipt,
    Squash,
    Trim,
    bare,
    decode_group,
)
from anabranch.core.bolt.protocol.compactors import (
    AdoptCopy,
    CompactorId,
    EndCompactor,
    ListCompactors,
    RegisterCompactor,
    RenewCompactor,
    SignCopies,
    TakeCopies,
)
from anabranch.core.bolt.protocol.marks import (
    AppendMarked,
    CompleteVersion,
    ReadWriters,
    WriterMark,
)
from anabranch.core.bolt.protocol.messages import Append, Describe, Fork, Read, changes, doubles
from anabranch.core.bolt.protocol.messages import Guarded as AskGuarded
from anabranch.core.bolt.protocol.messages import Trim as AskTrim
from anabranch.core.bolt.protocol.scans import (
    EndPlan,
    EraseGarbage,
    ListPlans,
    PlanId,
    PlanScan,
    ReadPlan,
    RenewPlan,
    SignScan,
)
from anabranch.core.errors import BadRequest
from anabranch.core.records.record import Record, encode
from anabranch.core.types import Kind, LogId

small = st.integers(0, (1 << 53) - 1)
LOG = LogId(1)


@given(small, small, small)
def test_a_receipt_is_read_back_from_its_text(log: int, generation: int, position: int) -> None:
    receipt = Receipt(LogId(log), generation, position)
    assert Receipt.parse(receipt.text) == receipt


@given(
    st.text("0123456789.", max_size=12)
    | st.text(max_size=12)
    | st.sampled_from(["1.0.١", "1.0.²", "1.-1.0", "1.0.1 ", "+1.0.1", "1.0.1e3", "1._.1"])
    | st.integers(0, 100).map(lambda zeros: f"1.0.{'0' * zeros}9")
    | st.just("9" * 1_000_000 + ".0.0")
)
def test_any_text_is_a_receipt_or_refused_and_costs_little(text: str) -> None:
    try:
        receipt = Receipt.parse(text)
    except BadRequest:
        return
    assert text.isascii()
    found = [receipt.log, receipt.generation, receipt.provisional]
    assert [int(part) for part in text.split(".")] == found
    assert max(found) < 1 << 53


def test_what_a_later_version_adds_to_an_entry_is_passed_over() -> None:
    """Fields are only ever added at the end."""
    entry = Entry(5, b"once", CreateLog("orders"), 7)
    fields = msgspec.msgpack.decode(msgspec.msgpack.encode([entry]))
    fields[0][2] += ["", "", "", None, "of tomorrow"]
    fields[0].append("of tomorrow")
    assert decode_group(msgspec.msgpack.encode(fields)) == [entry]
    fields[0] = fields[0][:3]
    assert decode_group(msgspec.msgpack.encode(fields)) == [Entry(5, b"once", CreateLog("orders"))]


def test_a_guard_changes_nothing_of_what_it_guards() -> None:
    command = Trim(LOG, 5)
    assert bare(Guarded("scope", 1, command)) is command
    assert bare(command) is command
    assert bare(Squash(LOG)) == Squash(LOG)


def batch(producer: int) -> bytes:
    return encode([Record(b"v")], producer_id=producer, producer_epoch=0, base_sequence=0, now=1)


@pytest.mark.parametrize(
    ("message", "twice"),
    [
        (Append(LOG, batch(-1)), True),
        (Append(LOG, batch(7)), False),
        (Fork(LOG, Kind.CONTINUOUS, b"once"), True),
        (Fork(LOG, Kind.CONTINUOUS, b"once", "name"), False),
        (Fork(LOG, Kind.CONTINUOUS, b"once", owner="k8s/n/Fork/a/1"), False),
        (AskTrim(LOG, 5, b"once"), False),
        (AskGuarded("scope", 1, Fork(LOG, Kind.CONTINUOUS, b"once")), True),
        (AskGuarded("scope", 1, AskTrim(LOG, 5, b"once")), False),
    ],
)
def test_what_nothing_tells_from_its_repetition_is_known(message: Any, twice: bool) -> None:
    assert doubles(message) == twice


PLAN = PlanId(7)
JOB = CompactorId(3)


@pytest.mark.parametrize(
    ("message", "changing"),
    [
        (Append(LOG, batch(-1)), True),
        (AppendMarked(LOG, batch(-1), WriterMark("q", 0, 0)), True),
        (CompleteVersion(LOG, "q", 0, [(0, 1)], b"once"), True),
        (AskTrim(LOG, 5, b"once"), True),
        (AskGuarded("scope", 1, AskTrim(LOG, 5, b"once")), True),
        (PlanScan(LOG, b"once", 1), True),
        (RenewPlan(LOG, PLAN, 1), True),
        (EndPlan(LOG, PLAN), True),
        (EraseGarbage(b"once"), True),
        (RegisterCompactor("job", 1, b"once"), True),
        (RenewCompactor(JOB, 1), True),
        (EndCompactor(JOB), True),
        (AdoptCopy(JOB, LOG, 1, 1, [], []), True),
        (TakeCopies(JOB, LOG, PLAN, 0), False),
        (SignCopies(JOB, []), False),
        (ListCompactors(), False),
        (Read(LOG, 0, 1, 1), False),
        (Describe(LOG), False),
        (ReadWriters(LOG), False),
        (ReadPlan(LOG, PLAN, 0, 1), False),
        (ListPlans(), False),
        (SignScan(LOG, PLAN, []), False),
    ],
)
def test_what_changes_something_is_told_from_what_only_reads(message: Any, changing: bool) -> None:
    """Who gets no answer is told that nothing was changed, or that something may have been."""
    assert changes(message) == changing
