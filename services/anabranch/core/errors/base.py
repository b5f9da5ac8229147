"""What every error is, and the five kinds by what they advise."""

from typing import ClassVar

Fact = str | int | None


class AnabranchError(Exception):
    """Base of all: carries its facts, so that it can cross a wire and be raised again on the
    other side.
    """

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 500
    advice: ClassVar[str] = "report"
    may_pass: ClassVar[bool] = False
    """Is this refusal forgotten, so that the same request can be granted later?"""
    says: ClassVar[str] = "{reason}"

    def __init__(self, **facts: Fact) -> None:
        self.facts = facts
        self.message = self.says.format(**facts)
        super().__init__(self.message)

    @property
    def request_id(self) -> str | None:
        """The id under which the same request may be repeated without being done twice, if it has
        one.
        """
        given = self.facts.get("request_id")
        return given if isinstance(given, str) and given else None


class Retry(AnabranchError):
    code = "retry"
    status = 503
    advice = "retry"
    may_pass = True


class Refresh(AnabranchError):
    code = "refresh"
    status = 409
    advice = "refresh"


class Fenced(AnabranchError):
    code = "fenced"
    status = 409
    advice = "stop"


class Mistake(AnabranchError):
    code = "mistake"
    status = 400
    advice = "change the request"


class Damage(AnabranchError):
    code = "damage"
    status = 500
    advice = "run fsck"
