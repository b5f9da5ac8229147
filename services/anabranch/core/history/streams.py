"""Subscriptions: in order, no holes; what was speculative is confirmed as it was, or failed."""

from anabranch.core.history.calls import Confirmation, Delivery, Failure, RecordId, Stream
from anabranch.core.history.content import Contents
from anabranch.core.history.family import Family, Violation
from anabranch.core.types import Position


def stream_violations(family: Family) -> list[Violation]:
    contents = Contents(family)
    found: list[Violation] = []
    for call in family.history.calls:
        if isinstance(call, Stream):
            found.extend(_follow(family, call, contents))
    return found + contents.found


def _follow(family: Family, stream: Stream, contents: Contents) -> list[Violation]:
    """`final` is where certainty ends, `seen` holds what was delivered beyond it."""
    final: Position = stream.start
    seen: list[RecordId] = []
    name = family.name(stream.log)
    for push in stream.pushes:
        match push:
            case Delivery():
                expected = final + len(seen)
                if push.first != expected:
                    says = f"{name} delivered {push.first} where {expected} was due"
                    return [Violation("9 no holes", says)]
                if push.speculative:
                    seen.extend(push.records)
                elif seen:
                    says = f"{name} delivered {push.first} as settled before {final} was confirmed"
                    return [Violation("9 order", says)]
                else:
                    final += len(push.records)
            case Confirmation():
                count = push.up_to - final
                if count > len(seen):
                    says = f"{name} confirmed up to {push.up_to}, delivered was {final + len(seen)}"
                    return [Violation("9 confirmation", says)]
                if count > 0:
                    contents.claim(stream.log, final, seen[:count], "a confirmation")
                    del seen[:count]
                    final = push.up_to
            case Failure():
                if push.since < final:
                    says = f"{name} failed {push.since}, which was final up to {final}"
                    return [Violation("9 final", says)]
                del seen[push.since - final :]
    return []
