"""A controller that writes into its process's log which views of its log were lost."""

from collections.abc import Callable
from typing import Any, Protocol

from anabranch.core.machine import Effects, Event
from anabranch.core.sequencing.controller.plan import ViewConfiguration
from anabranch.core.types import Nanoseconds
from anabranch.shell.telemetry.log import Log


class Controller(Protocol):
    @property
    def config(self) -> Any:
        """It has the controller's `node`."""
        ...

    @property
    def configuration(self) -> ViewConfiguration: ...

    def start(self, now: Nanoseconds) -> Effects: ...

    def step(self, now: Nanoseconds, event: Event) -> Effects: ...


class LostViewLogger:
    """A machine: the controller, and a warning once it has noted that a view is lost."""

    def __init__(self, controller: Controller, leads: Callable[[], bool], log: Log) -> None:
        """`leads`: of a group of controllers only the one that decides writes."""
        self._controller = controller
        self._leads = leads
        self._log = log
        self._seen: ViewConfiguration | None = None
        self._said = 0

    def start(self, now: Nanoseconds) -> Effects:
        return self._controller.start(now)

    def step(self, now: Nanoseconds, event: Event) -> Effects:
        effects = self._controller.step(now, event)
        if self._controller.configuration is not self._seen and self._leads():
            self._seen = self._controller.configuration
            self._look(self._seen)
        return effects

    def _look(self, found: ViewConfiguration) -> None:
        """A view is noted as lost while it is still the log's; what is noted of earlier ones was
        written when they were.
        """
        if found.view is None or not found.lost_views:
            return
        lost, _ = found.lost_views[-1]
        if lost == found.view.number > self._said:
            self._said = lost
            self._log.warning(
                "a view was lost with its last member: what it had acknowledged and not ordered "
                "is gone",
                node=self._controller.config.node,
                view=lost,
            )
