"""How much a benchmark does: all of it, or as little as shows that it runs."""

from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Size:
    smoke: bool = False

    def of(self, full: T, smoke: T) -> T:
        return smoke if self.smoke else full
