"""Explores every state that a model can reach, for the shortest way to one that is wrong."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

S = TypeVar("S")


class Found(NamedTuple):
    why: str
    trace: tuple[str, ...]


def explore(
    first: S, steps: Callable[[S], Iterable[tuple[str, S]]], wrong: Callable[[S], str | None]
) -> tuple[int, Found | None]:
    """The number of states, and the shortest way to one that is wrong.

    `steps`: the states that may follow, and what happens on the way. `wrong`: why a state is.
    """
    before: dict[S, tuple[S, str] | None] = {first: None}
    todo = deque([first])
    while todo:
        state = todo.popleft()
        why = wrong(state)
        if why is not None:
            return len(before), Found(why, _trace(before, state))
        for what, after in steps(state):
            if after not in before:
                before[after] = (state, what)
                todo.append(after)
    return len(before), None


def _trace(before: dict[S, tuple[S, str] | None], at: S) -> tuple[str, ...]:
    trace: list[str] = []
    while (came := before[at]) is not None:
        at, what = came
        trace.append(what)
    return tuple(reversed(trace))
