"""What a log remembers of a producer, so that a batch sent again is not appended again (spec
D4).
"""

from hashlib import blake2b

from anabranch.core.errors import BadRequest
from anabranch.core.types import Milliseconds, Position

REMEMBERED = 16
"""Batches of one producer whose places are known: a client keeps no more in flight to one log."""

SEQUENCE_SPACE = 1 << 31
"""Sequences wrap as Kafka's do."""

REQUEST_EPOCH = (1 << 15) - 1
"""A batch of this epoch and of sequence 0 is a request of its own: its producer id is the identity
of that request. No producer counts as far as this epoch.
"""

REQUEST_ID_CHARS_MAX = 200
"""A request id, as a caller chooses it."""


def request_identity(name: str, request_id: str) -> int:
    """The producer id of an append under this request id to the log of this name.

    It follows from the name and not from the log's id, so that a repetition is known for what it is
    after the log was squashed or promoted and its name was given to another.
    """
    _check(request_id)
    path = f"/v1/logs/{name.replace('@', '--', 1)}/records"
    digest = blake2b(
        f"POST {path}\n{request_id}".encode("utf-8", "surrogatepass"), digest_size=16
    ).digest()
    assert len(digest) == 16
    return int.from_bytes(digest[:8]) >> 1


def _check(request_id: object) -> None:
    if not isinstance(request_id, str) or not 0 < len(request_id) <= REQUEST_ID_CHARS_MAX:
        reason = f"a string of 1 to {REQUEST_ID_CHARS_MAX} characters was expected"
        raise BadRequest(f"request_id {request_id!r:.40}", reason)


def is_request(producer: int, epoch: int, sequence: int) -> bool:
    """Is this batch a request of its own, rather than one of a producer's series?"""
    return epoch == REQUEST_EPOCH and sequence == 0 and producer >= 0


class Producer:
    """The next sequence expected, and where the last batches went, newest last."""

    __slots__ = ("at", "epoch", "next", "recent")

    def __init__(self, epoch: int, at: Milliseconds) -> None:
        self.epoch = epoch
        self.next = 0
        self.at = at
        self.recent: list[tuple[int, Position, int]] = []
        """(sequence, first position, the log's generation then)."""

    def place(self, sequence: int) -> tuple[Position, int] | None:
        """Where the batch that began with this sequence went, if it is remembered."""
        for then, position, generation in self.recent:
            if then == sequence:
                return position, generation
        return None

    def note(self, sequence: int, position: Position, generation: int) -> None:
        self.recent.append((sequence, position, generation))
        if len(self.recent) > REMEMBERED:
            del self.recent[0]
