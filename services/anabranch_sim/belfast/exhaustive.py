"""Every order in which a small deployment's messages, timers and one failure may come.

Schedules are explored by how often they deviate from the order in which things were begun: first
all with one deviation, then with two, as many as there is patience for. A state that was met
before with as many deviations to go is left. Each schedule is run from the beginning.
"""

import sys
import time
from collections import deque
from collections.abc import Iterator

import msgspec

from anabranch_sim.belfast.small_deployment import SEQUENCER, SHARDS, SmallDeployment
from anabranch_sim.world.simulation import BUGS

DEVIATIONS_MAX = 2
STEPS_MAX = 900
"""Of one schedule: more, and something waits for what never comes."""

Move = tuple[str, str, str]
"""What is done, and to whom, and to what."""

Schedule = tuple[tuple[int, Move], ...]
"""At which steps another move is made than the one whose turn it is."""


class Exploration(msgspec.Struct):
    """What became of it; without a `violation` all is well."""

    schedules: int = 0
    steps: int = 0
    states: int = 0
    complete: int = 0
    """So many deviations were tried wherever there may be any."""
    violation: str = ""
    schedule: Schedule = ()


def explore(quotas: tuple[int, int], schedules_max: int) -> Exploration:
    found = Exploration()
    seen: dict[bytes, int] = {}
    waiting: deque[Schedule] = deque([()])
    while waiting and found.schedules < schedules_max:
        schedule = waiting.popleft()
        found.complete = max(0, len(schedule) - 1)
        found.schedules += 1
        violation = _run(quotas, schedule, waiting, seen, found)
        if violation:
            found.violation, found.schedule = violation, schedule
            break
    else:
        found.complete = found.complete if waiting else DEVIATIONS_MAX
    found.states = len(seen)
    return found


def _run(
    quotas: tuple[int, int],
    schedule: Schedule,
    waiting: deque[Schedule],
    seen: dict[bytes, int],
    found: Exploration,
) -> str:
    """Says what was wrong. What else could have been done on the way is put in the line."""
    little = SmallDeployment(quotas)
    due = deque(schedule)
    left = DEVIATIONS_MAX - len(schedule)
    try:
        while not little.over and little.steps < STEPS_MAX:
            little.speak()
            if due and due[0][0] == little.steps:
                _make(little, due.popleft()[1])
                found.steps += 1
                if not due and _known(little, left, seen):
                    return ""
                continue
            if not due and left:
                moves = list(_others(little, schedule))
                waiting.extend((*schedule, (little.steps, move)) for move in moves)
            little.proceed()
            found.steps += 1
            if little.complaints():
                break
    except BUGS as error:
        return f"failed: {type(error).__name__}: {error}"
    if little.steps >= STEPS_MAX:
        return f"liveness: after {STEPS_MAX} steps it isn't over"
    faults = little.verdict()
    return faults[0] if faults else ""


def _known(little: SmallDeployment, left: int, seen: dict[bytes, int]) -> bool:
    """Was this state met before, with as many deviations to go?"""
    state = little.likeness()
    if seen.get(state, -1) >= left:
        return True
    seen[state] = left
    return False


def _others(little: SmallDeployment, schedule: Schedule) -> Iterator[Move]:
    """All that may happen instead of what comes next."""
    links = little.links()
    for sender, receiver in links[1:]:
        yield "deliver", sender, receiver
    if links:
        yield "fire", "", ""
        if links[0][0] in (SEQUENCER, *SHARDS):
            yield "lose", *links[0]
    if not any(move[0] in {"crash", "kill"} for _, move in schedule):
        for name in (SEQUENCER, *SHARDS):
            yield "crash", name, ""
        for name in SHARDS:
            yield "kill", name, ""


def _make(little: SmallDeployment, move: Move) -> None:
    match move:
        case "deliver", sender, receiver:
            little.deliver((sender, receiver))
        case "lose", sender, receiver:
            little.lose((sender, receiver))
        case "crash", name, _:
            little.crash(name, back=True)
        case "kill", name, _:
            little.crash(name, back=False)
        case _:
            little.fire()


def main() -> int:
    failed = 0
    for quotas in ((1, 1), (1, 2)):
        began = time.monotonic()
        found = explore(quotas, 200_000)
        took = time.monotonic() - began
        print(f"quotas of {quotas}: {found} in {took:.1f} s")
        failed += bool(found.violation)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
