"""A machine as the probes and metrics of its process show it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from anabranch.core.machine import Machine


@dataclass(frozen=True, slots=True)
class NodeMachine:
    kind: str
    """The subject of its metrics."""
    machine: Machine
    role: Callable[[], str]
    obstacle: Callable[[], str | None]
    """Why nothing is expected of the machine yet."""
    counters: Any
    """None if it has none."""
    gauges: Callable[[], Any]
