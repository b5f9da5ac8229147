"""The identity of an append, and of a member of the sequencing layer."""

import msgspec

from anabranch.core.records.batch import Header


class AppendId(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """One append, which is one record batch: repeated, it is the same append (LazyLog, 4.1)."""

    producer: int
    epoch: int
    sequence: int

    @classmethod
    def of(cls, header: Header) -> "AppendId":
        return cls(header.producer_id, header.producer_epoch, header.base_sequence)


class Member(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """A sequencing replica in one of its lives: another life has lost what it held in memory."""

    node: str
    life: int
