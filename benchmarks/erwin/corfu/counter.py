"""Corfu's sequencer: it hands out positions, and knows nothing of batches."""

from anabranch.core.errors import AnabranchError, BadRequest
from anabranch.core.errors.refused import Refused
from anabranch.core.machine import (
    Drain,
    Effects,
    Event,
    Gone,
    Reply,
    Request,
    Requests,
    Rest,
)
from anabranch.core.types import Nanoseconds, Position
from benchmarks.erwin.corfu.messages import Granted, Next


class Counter:
    """Machine: one counter in memory."""

    def __init__(self) -> None:
        self.next: Position = 0

    def start(self, now: Nanoseconds) -> Effects:
        return ()

    def step(self, now: Nanoseconds, event: Event) -> Effects:
        match event:
            case Request(token, Next()):
                position = self.next
                self.next += 1
                return (Reply(token, Granted(position)),)
            case Request(token, _):
                return (Reply(token, _refused("it only grants positions")),)
            case Requests(tokens):
                refused = _refused("replicas take batches")
                return tuple(Reply(token, refused) for token in tokens)
            case Gone():
                return ()
            case Drain():
                return (Rest(),)
            case _:
                raise AssertionError(event)


def _refused(reason: str) -> Refused:
    error: AnabranchError = BadRequest("a request to Corfu's sequencer", reason)
    return Refused.of(error)
