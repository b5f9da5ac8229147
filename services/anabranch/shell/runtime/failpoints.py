"""Places where a process can be made to fail, by name: for the tests of what then happens.

`peers.send=drop@3;journal.append.before=exit` arms two. An action happens every time its place is
reached, or with `@n` the n-th time only. Nothing is armed unless a setting says so, and then a
place costs one look.
"""

import os
import signal
import sys
from dataclasses import dataclass
from enum import StrEnum
from threading import Lock

from anabranch.core.errors import BadRequest, Unavailable


class Action(StrEnum):
    NOTE = "note"
    """Say that the place was reached, and go on."""
    DROP = "drop"
    """Leave out what comes next; a call fails, its outcome unknown."""
    FAIL = "fail"
    """Raise Unavailable, as an outage would."""
    EXIT = "exit"
    """End the process as kill -9 would."""
    PAUSE = "pause"
    """Stop the process as SIGSTOP does, until somebody sends SIGCONT."""


_ENDS = frozenset({Action.NOTE, Action.EXIT, Action.PAUSE})
_DROPS = _ENDS | {Action.DROP}
_FAILS = _ENDS | {Action.FAIL}

FAILPOINTS: dict[str, frozenset[Action]] = {
    # A broker is about to dial a member.
    "peers.connect": _DROPS,
    # A letter is about to be written to another process; one has come.
    "peers.send": _DROPS,
    "peers.receive": _DROPS,
    # A group is about to be written to etcd; it is there, and nobody knows yet.
    "journal.append.before": _FAILS,
    "journal.append.after": _ENDS,
    # The lease of this member's election key is about to be renewed.
    "election.keepalive": _DROPS,
    # An object is about to be put; it is in the bucket, and nobody knows yet.
    "store.put.before": _DROPS,
    "store.put.after": _DROPS,
    # A part of an object is about to be read.
    "store.get.before": _DROPS,
}
"""Every place, and what may happen there: only what something real could do."""


@dataclass(slots=True)
class _Armed:
    action: Action
    at: int
    """Which time; 0 is every time."""
    reached: int = 0


_armed: dict[str, _Armed] | None = None
_lock = Lock()


def arm(text: str) -> None:
    """What the setting says, from now on; an empty text disarms all."""
    global _armed  # noqa: PLW0603 - of the whole process, like the signals it can send itself
    _armed = dict(map(_parsed, text.replace(",", ";").split(";"))) if text else None


def reached(name: str) -> bool:
    """True if what comes next is to be left out. Any thread may call."""
    return _armed is not None and _reached(name, _armed)


def _reached(name: str, armed: dict[str, _Armed]) -> bool:
    assert name in FAILPOINTS, name
    place = armed.get(name)
    if place is None:
        return False
    with _lock:
        place.reached += 1
        number = place.reached
    if place.at not in {0, number}:
        return False
    match place.action:
        case Action.NOTE:
            if number == 1:
                sys.stderr.write(f"failpoint {name}\n")
                sys.stderr.flush()
        case Action.DROP:
            return True
        case Action.FAIL:
            raise Unavailable(name, "a failpoint says so")
        case Action.EXIT:
            os.kill(os.getpid(), signal.SIGKILL)
        case Action.PAUSE:
            os.kill(os.getpid(), signal.SIGSTOP)
    return False


def _parsed(part: str) -> tuple[str, _Armed]:
    name, _, what = part.strip().partition("=")
    action, _, at = what.partition("@")
    if name not in FAILPOINTS:
        reason = f"there is no such failpoint: choose from {', '.join(FAILPOINTS)}"
        raise BadRequest(f"failpoint {name!r}", reason)
    possible = FAILPOINTS[name]
    if action not in possible or not (at or "1").isdecimal():
        named = ", ".join(sorted(possible))
        reason = f"{what!r} is not ACTION or ACTION@N: the actions there are {named}"
        raise BadRequest(f"failpoint {name}", reason)
    return name, _Armed(Action(action), int(at or 0))
