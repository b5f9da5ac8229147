"""What stands in the way of appends with writer marks (decision 76)."""

from anabranch.core.errors.base import Mistake, Retry


class PartGap(Retry):
    """A batch of a part came before the ones in front of it."""

    code = "part-gap"
    status = 409
    says = (
        "batch {got} of part {part} of version {version} by writer {writer} came to {log}, which "
        "expects batch {expected}: send the batches of a part in order, from 0 on; those that the "
        "log has already aren't appended again"
    )

    def __init__(  # all of them are facts
        self, log: str, writer: str, version: int, part: int, expected: int, got: int
    ) -> None:
        super().__init__(
            log=log, writer=writer, version=version, part=part, expected=expected, got=got
        )


class PartDiffers(Mistake):
    """A part is written again, with other records than at first."""

    code = "part-differs"
    status = 409
    says = (
        "batch {batch} of part {part} of version {version} by writer {writer} isn't what {log} "
        "holds under that number, and nothing was appended: {reason}. A part that is written again "
        "must have the same records in the same order; records that differ need another version, "
        "or a fork"
    )

    def __init__(  # all of them are facts
        self, log: str, writer: str, version: int, part: int, batch: int, reason: str
    ) -> None:
        super().__init__(
            log=log, writer=writer, version=version, part=part, batch=batch, reason=reason
        )


class WriterConflict(Mistake):
    """A writer's versions in a log don't allow what was asked."""

    code = "writer-conflict"
    status = 409
    may_pass = True
    says = "version {version} of writer {writer} in {log}: {reason}; nothing was changed"

    def __init__(self, log: str, writer: str, version: int, reason: str) -> None:
        super().__init__(log=log, writer=writer, version=version, reason=reason)


class NoWriterMarks(Mistake):
    """The log keeps no writer marks."""

    code = "no-writer-marks"
    status = 409
    says = (
        "{log} keeps no writer marks, because {reason}: append with marks to a Bolt log without a "
        "lazy front, such as a fork of this one if it is a Bolt log, or append without marks"
    )

    def __init__(self, log: str, reason: str) -> None:
        super().__init__(log=log, reason=reason)
