"""The promise of a position that is withheld while a promotable fork is undecided."""

import msgspec

from anabranch.core.errors import BadRequest
from anabranch.core.types import LogId, Position

_RECEIPT_CHARS_MAX = 80
_RECEIPT_END = 1 << 53
"""JSON's numbers are exact below it."""


class Receipt(msgspec.Struct, frozen=True, array_like=True, tag="receipt"):
    """The promise of a position: where the record would be if no promotion came between
    (AgileLog, 4.1).
    """

    log: LogId
    generation: int
    provisional: Position

    @property
    def text(self) -> str:
        """What every front gives and takes; `parse` reads it."""
        return f"{self.log}.{self.generation}.{self.provisional}"

    @staticmethod
    def parse(text: str) -> "Receipt":
        """BadRequest if it is none."""
        parts = text.split(".")
        if len(parts) == 3 and all(each.isascii() and each.isdecimal() for each in parts):
            # The length is looked at first: to read a number of many digits takes long.
            short = len(text) <= _RECEIPT_CHARS_MAX
            log, generation, provisional = map(int, parts) if short else (_RECEIPT_END, 0, 0)
            if max(log, generation, provisional) < _RECEIPT_END:
                return Receipt(LogId(log), generation, provisional)
        raise BadRequest("receipt", "it isn't one that an append returned, such as 1.0.12")
