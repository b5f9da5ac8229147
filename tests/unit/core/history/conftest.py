"""A history told by hand, one call after another."""

from typing import Any

import msgspec
import pytest

from anabranch.core.history import History, check
from anabranch.core.history.calls import (
    AnyCall,
    Append,
    Create,
    Fate,
    Final,
    Fork,
    Promote,
    Push,
    Read,
    Redeem,
    Stream,
    Verdict,
)
from anabranch.core.types import Kind, LogId

ROOT, FORK, RIVAL, SEVERED, BESIDE = (LogId(n) for n in range(1, 6))
OK, REFUSED, UNKNOWN = Verdict.OK, Verdict.REFUSED, Verdict.UNKNOWN


class Tale:
    """A history told one call after another, unless times are given."""

    def __init__(self) -> None:
        self.history = History()
        self.now = 0

    def say(self, call: AnyCall) -> AnyCall:
        if call.verdict is not UNKNOWN and call.returned > 1 << 60:
            call.returned = call.invoked + 5
        self.now = max(self.now, call.invoked + 10)
        self.history.calls.append(call)
        return call

    def at(self, log: LogId, verdict: Verdict = OK, code: str = "") -> dict[str, Any]:
        return {"client": 1, "log": log, "invoked": self.now, "verdict": verdict, "code": code}

    def create(self) -> None:
        self.say(Create(**self.at(ROOT), name="root"))

    def fork(self, log: LogId, parent: LogId, point: int, **more: Any) -> Fork:
        more = {"kind": Kind.CONTINUOUS, "name": f"fork-{log}"} | more
        fork = Fork(**self.at(log), parent=parent, fork_point=point, **more)
        self.say(fork)
        return fork

    def append(self, log: LogId, *records: int, position: int | None = None) -> Append:
        append = Append(**self.at(log), records=list(records), position=position)
        self.say(append)
        return append

    def read(self, log: LogId, first: int, *records: int) -> Read:
        end = first + len(records)
        read = Read(**self.at(log), first=first, records=list(records), tail=end, settled=end)
        self.say(read)
        return read

    def stream(self, log: LogId, *pushes: Push) -> None:
        self.say(Stream(**self.at(log), start=0, pushes=list(pushes)))

    def end(self, log: LogId, *records: int, **more: Any) -> Final:
        start = more.get("start", 0)
        assert isinstance(start, int)
        tail = start + len(records)
        more = {"name": "root" if log == ROOT else f"fork-{log}", "settled": tail} | more
        final = Final(log=log, tail=tail, records=list(records), **more)
        self.history.finals.append(final)
        return final

    def broken(self) -> set[str]:
        stored = msgspec.msgpack.encode(self.history)
        return {violation.rule for violation in check(msgspec.msgpack.decode(stored, type=History))}

    def promoted(self) -> tuple[Final, Final]:
        """Two promotable rivals with a bystander: FORK wins, RIVAL is squashed, BESIDE gets the
        +k.
        """
        self.append(ROOT, 10, position=0)
        self.fork(BESIDE, ROOT, 1)
        self.append(BESIDE, 50, position=1)
        self.fork(FORK, ROOT, 1, promotable=True)
        self.fork(RIVAL, ROOT, 1, promotable=True)
        self.append(FORK, 20, position=1)
        self.append(RIVAL, 30, position=1)
        self.append(ROOT, 11)
        self.read(FORK, 0, 10, 20, 11)
        self.say(Promote(**self.at(FORK), squashed=["fork-3"]))
        self.say(Redeem(**self.at(ROOT), records=[11], into=ROOT, position=2))
        self.read(ROOT, 0, 10, 20, 11)
        root = self.end(ROOT, 10, 20, 11)
        beside = self.end(BESIDE, 10, 50, 20, 11, kind=Kind.CONTINUOUS, parent=ROOT, fork_point=1)
        self.end(FORK, fate=Fate.PROMOTED)
        self.end(RIVAL, fate=Fate.SQUASHED)
        return root, beside


@pytest.fixture
def tale() -> Tale:
    told = Tale()
    told.create()
    return told
