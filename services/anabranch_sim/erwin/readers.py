"""Programs that read, follow, trim and ask for the tail. The witness judges what they hear."""

from functools import partial
from typing import Any

from anabranch.core.errors import AnabranchError, Retry
from anabranch.core.errors.refused import Refused
from anabranch.core.erwin.invariants.account import Account, TailCall
from anabranch.core.erwin.invariants.witness import Witness
from anabranch.core.erwin.protocol.messages import Delivered, Elsewhere, Read, Records, Subscribe
from anabranch.core.sequencing.protocol.messages import AskTail, Directory, Done, Tail, Trim
from anabranch.core.types import NEVER, Position
from anabranch.core.wire.session import Credit
from anabranch_sim.erwin.client import ErwinClient, Question
from anabranch_sim.erwin.history import ReadLog
from anabranch_sim.erwin.line import Line
from anabranch_sim.world.deployment import Deployment


class Reader(Question):
    """Reads one range at one shard."""

    def __init__(
        self,
        deployment: Deployment,
        name: str,
        nodes: tuple[str, ...],
        shard: str,
        start: Position,
        log: ReadLog,
        wait_ms: int = 0,
    ) -> None:
        super().__init__(deployment, name, nodes)
        self.log = log
        self.shard_name = shard
        self.start = self.upto = start
        self.wait_ms = wait_ms
        self.error: AnabranchError | None = None

    def target(self, directory: Directory) -> str:
        shard = self.shard(self.shard_name)
        return shard.primary if shard is not None else ""

    def message(self) -> Read:
        rng = self.world.rng
        return Read(
            shard=self.shard_name,
            start=self.upto,
            bytes_max=rng.choice((1, 500, 1 << 20)),
            records_max=rng.choice((1, 5, 1_000)),
            wait_ms=self.wait_ms,
        )

    def answered(self, message: Any) -> None:
        assert isinstance(message, Records), message
        self._note(message)
        self.finish()

    def _note(self, message: Records) -> None:
        returned = self.world.stamp()
        self.log.read(start=self.upto, answer=message, invoked=self.asked, returned=returned)
        self.upto = message.upto

    def refused(self, error: AnabranchError) -> None:
        self.error = error


class Scanner(Reader):
    """Reads on until it has all below a position."""

    def __init__(
        self,
        deployment: Deployment,
        name: str,
        nodes: tuple[str, ...],
        shard: str,
        start: Position,
        goal: Position,
        log: ReadLog,
    ) -> None:
        super().__init__(deployment, name, nodes, shard, start, log, wait_ms=100)
        self.goal = goal

    def answered(self, message: Any) -> None:
        assert isinstance(message, Records), message
        self._note(message)
        if self.upto >= self.goal:
            self.finish()
        else:
            self.world.after(0, self.put)


class TailAsker(ErwinClient):
    """Asks all members of its view for the tail, and counts the leader's answer."""

    def __init__(
        self, deployment: Deployment, name: str, nodes: tuple[str, ...], account: Account
    ) -> None:
        super().__init__(deployment, name, nodes)
        self.account = account
        self.finished = False
        self.ordered: Position = -1
        self.tail: Position = -1
        self._invoked = 0
        self._round = 0
        self._answers: dict[str, Tail] = {}

    def waits(self) -> bool:
        return not self.finished

    def begin(self) -> None:
        self._invoked = self.world.stamp()
        super().begin()

    def on_directory(self, directory: Directory) -> None:
        self._ask()

    def _ask(self) -> None:
        directory = self.directory
        if directory is None or self.finished or self.over:
            return
        self._round += 1
        self._answers.clear()
        for node in directory.members:
            heard = partial(self._heard, self._round, directory, node)
            self.line(node).ask(AskTail(directory.view), heard)

    def _heard(self, number: int, directory: Directory, node: str, message: Any) -> None:
        if number != self._round or self.finished:
            return
        if not isinstance(message, Tail):
            self.locate()
            self.later(partial(self._ask_if_still, number))
            return
        self._answers[node] = message
        if set(self._answers) >= set(directory.members):
            leading = self._answers[directory.leader]
            self.ordered, self.tail = leading.ordered, leading.tail
            call = TailCall(self._invoked, leading.tail, self.world.stamp())
            self.account.tails.append(call)
            self.finished = True
            self.end()

    def _ask_if_still(self, number: int) -> None:
        if number == self._round:
            self._ask()


class Trimmer(Question):
    """Trims below one position."""

    def __init__(
        self,
        deployment: Deployment,
        name: str,
        nodes: tuple[str, ...],
        position: Position,
        log: ReadLog,
    ) -> None:
        super().__init__(deployment, name, nodes)
        self.position = position
        self.done = False
        self._log = log

    def begin(self) -> None:
        self._log.trim(self.position, invoked=self.world.stamp(), returned=NEVER)
        super().begin()

    def target(self, directory: Directory) -> str:
        return directory.leader

    def message(self) -> Trim:
        return Trim(self.position)

    def answered(self, message: Any) -> None:
        assert isinstance(message, Done), message
        self.done = True
        self._log.trim(self.position, invoked=self.asked, returned=self.world.stamp())
        self.finish()


class Follower(ErwinClient):
    """Follows one shard from a position on."""

    def __init__(
        self,
        deployment: Deployment,
        name: str,
        nodes: tuple[str, ...],
        shard: str,
        start: Position,
        witness: Witness,
        log: ReadLog,
    ) -> None:
        super().__init__(deployment, name, nodes)
        self.shard_name = shard
        self.upto = start
        self.faults: list[str] = []
        self._log = log
        self._asked = 0
        self._trims = 0
        self._witness = witness
        self._line: Line | None = None
        self._node = ""
        self._request = 0
        self._window = self.world.rng.choice((200, 4_000, 1 << 20))

    def waits(self) -> bool:
        return True

    def on_directory(self, directory: Directory) -> None:
        shard = self.shard(self.shard_name)
        if shard is not None and shard.primary and shard.primary != self._node:
            self._move(shard.primary)

    def _move(self, node: str) -> None:
        """Nobody, if no primary is known: then the directory's is tried again."""
        if self.over:
            return
        if node not in self._nodes:
            shard = self.shard(self.shard_name)
            self.later(partial(self._move, shard.primary if shard is not None else ""))
            return
        if self._line is not None:
            self._line.forget(self._request)
        self._node, self._line = node, self.line(node)
        self._request = self._line.follow(self._ask, partial(self._heard, node))

    def _ask(self) -> Subscribe:
        self._asked = self.world.stamp()
        return Subscribe(shard=self.shard_name, start=self.upto, window_bytes=self._window)

    def _heard(self, node: str, message: Any) -> None:
        if self.over or node != self._node:
            return
        match message:
            case Delivered():
                if message.upto < self.upto:
                    self.faults.append(f"E5: {self.name} was at {self.upto}, hears {message.upto}")
                self._note(message)
                size = sum(map(len, message.batches))
                if size and self._line is not None:
                    credit = Credit(self._request, size)
                    pause = self.world.between(0, 2_000_000)
                    self.world.after(pause, partial(self._line.say, credit))
            case Elsewhere(other):
                self.later(partial(self._move, other))
            case Refused():
                self._refused(node, message.error())
            case _:
                raise AssertionError(message)

    def _note(self, message: Delivered) -> None:
        self._log.read(
            start=self.upto,
            answer=message,
            invoked=self._asked,
            returned=self.world.stamp(),
            stream=f"{self.name} after {self._trims} trims",
        )
        self.upto = max(self.upto, message.upto)

    def _refused(self, node: str, error: AnabranchError) -> None:
        if error.code == "position-trimmed":
            self._trims += 1
            self.upto = max(self.upto, self._witness.order.trimmed)
        elif not isinstance(error, Retry):
            self.faults.append(f"{self.name} at {self.upto} is refused: {error.message}")
            self.end()
            return
        self.later(partial(self._move, node))
