"""An error as a value, as machines answer it and as it travels to whoever asked."""

import msgspec

from anabranch.core.errors import AnabranchError, Fact, restore


class Refused(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="refused"):
    """An error as a value: the answer of a request that changed nothing."""

    code: str
    message: str
    facts: dict[str, Fact]

    @staticmethod
    def of(error: AnabranchError) -> "Refused":
        return Refused(error.code, error.message, error.facts)

    def error(self) -> AnabranchError:
        return restore(self.code, self.message, self.facts)
