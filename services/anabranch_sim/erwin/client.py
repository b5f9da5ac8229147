"""A client of an Erwin log at the level of its messages: lines to all nodes, and a directory."""

from collections.abc import Callable
from functools import partial
from typing import Any

from anabranch.core.errors import AnabranchError, Retry
from anabranch.core.errors.refused import Refused
from anabranch.core.erwin.protocol import messages as shard_messages
from anabranch.core.sequencing.protocol.messages import Directory, Elsewhere, Locate, Shard
from anabranch.core.types import MS, Nanoseconds
from anabranch_sim.erwin.line import Line
from anabranch_sim.world.deployment import Deployment

REFRESH: Nanoseconds = 60 * MS
"""A client that waits for something looks for a newer directory so often."""


class ErwinClient:
    """Knows who the members and the shards are, as far as anybody has told it."""

    def __init__(self, deployment: Deployment, name: str, nodes: tuple[str, ...]) -> None:
        self.deployment = deployment
        self.world = deployment.world
        self.name = name
        self.over = False
        self.directory: Directory | None = None
        self._nodes = nodes
        self._lines: dict[str, Line] = {}
        self._locating = False

    def waits(self) -> bool:
        """Is there something that a newer directory could help?"""
        return True

    def on_directory(self, directory: Directory) -> None:
        """A newer one has come."""

    def begin(self) -> None:
        self._look()

    def end(self) -> None:
        self.over = True
        for line in self._lines.values():
            line.close()

    def reset(self, reason: str) -> None:
        """The network breaks one of its connections."""
        if self._lines:
            self.world.rng.choice(list(self._lines.values())).reset(reason)

    def line(self, node: str) -> Line:
        if node not in self._lines:
            self._lines[node] = Line(self.deployment, self.name, node)
        return self._lines[node]

    def shard(self, name: str) -> Shard | None:
        shards = self.directory.shards if self.directory is not None else ()
        return next((each for each in shards if each.name == name), None)

    def locate(self) -> None:
        """Ask somebody for the directory."""
        if self._locating or self.over:
            return
        self._locating = True
        line = self.line(self.world.rng.choice(self._nodes))
        request = line.ask(Locate(), self._located)
        self.world.after(REFRESH, partial(self._located_nothing, line, request))

    def _located_nothing(self, line: Line, request: int) -> None:
        line.forget(request)
        self._locating = False

    def _located(self, message: Any) -> None:
        self._locating = False
        if self.over or not isinstance(message, Directory):
            return
        known = self.directory
        if known is None or (message.version, message.view) > (known.version, known.view):
            self.directory = message
            self.on_directory(message)

    def _look(self) -> None:
        if self.over:
            return
        if self.waits():
            self.locate()
        self.world.after(self.world.between(REFRESH // 2, REFRESH), self._look)

    def later(self, action: Callable[[], None]) -> None:
        """What was refused for now is tried again."""

        def act() -> None:
            if not self.over:
                action()

        self.world.after(self.world.between(2 * MS, 40 * MS), act)


class Question(ErwinClient):
    """One question to whoever leads, asked until it is answered for good."""

    def __init__(self, deployment: Deployment, name: str, nodes: tuple[str, ...]) -> None:
        super().__init__(deployment, name, nodes)
        self.finished = False
        self.asked = 0
        """When this was asked last."""

    def target(self, directory: Directory) -> str:
        """The node that can answer; empty: nobody is known."""
        raise NotImplementedError

    def message(self) -> Any:
        raise NotImplementedError

    def answered(self, message: Any) -> None:
        raise NotImplementedError

    def refused(self, error: AnabranchError) -> None:
        """For good."""

    def waits(self) -> bool:
        return not self.finished

    def begin(self) -> None:
        super().begin()
        self.put()

    def put(self) -> None:
        """Ask the node that the directory names."""
        if self.finished or self.over:
            return
        node = self.target(self.directory) if self.directory is not None else ""
        self.ask_at(node)

    def ask_at(self, node: str) -> None:
        if node not in self._nodes:
            self.locate()
            self.later(self.put)
            return
        line = self.line(node)
        self.asked = self.world.stamp()
        request = line.ask(self.message(), self._heard)
        self.world.after(8 * REFRESH, partial(self._give_up, line, request))

    def finish(self) -> None:
        self.finished = True
        self.end()

    def _give_up(self, line: Line, request: int) -> None:
        """It may have moved."""
        if not self.finished and line.forget(request):
            self.locate()
            self.put()

    def _heard(self, message: Any) -> None:
        if self.finished or self.over:
            return
        match message:
            case Elsewhere(node) | shard_messages.Elsewhere(node):
                self.later(partial(self.ask_at, node))
            case Refused():
                error = message.error()
                if isinstance(error, Retry) or error.code == "stale-view":
                    self.locate()
                    self.later(self.put)
                else:
                    self.refused(error)
                    self.finish()
            case _:
                self.answered(message)
