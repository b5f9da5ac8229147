"""Cursors of a Bolt log, as an asyncio program holds them."""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

from typing import TYPE_CHECKING

from anabranch.client.session import arguments
from anabranch.core.bolt.protocol.commands import Done
from anabranch.core.bolt.protocol.messages import CommitCursor, DeleteCursor
from anabranch.core.types import OnPromote, Position

if TYPE_CHECKING:
    from anabranch.client.bolt.log import Log


class Cursor:
    """A named position that a log keeps for a reader, so that it can go on where it was."""

    def __init__(self, log: "Log", name: str) -> None:
        self.log, self.name = log, name

    async def get(self, *, timeout: float | None = None) -> Position | None:
        """None if it was never committed."""
        return (await self.log.cursors(timeout=timeout)).get(self.name)

    async def commit(
        self,
        position: Position,
        *,
        on_promote: OnPromote | None = None,
        timeout: float | None = None,
    ) -> None:
        """Keep the position of the next record to be read; it must be settled.

        `on_promote`: in a fork, whether it becomes its parent's when the fork is promoted (by
        default it follows); in a parent that has one of the same name, whether it goes on where
        the fork's was, if that is further (by default it stays). Chosen once, it is kept.
        """
        log = self.log
        position = arguments.position(f"the cursor {self.name}", position)
        message = CommitCursor(log.id, self.name, position, log.link.once(), on_promote)
        await log.ask(message, Done, f"commit cursor {self.name} of", timeout)

    async def delete(self, *, timeout: float | None = None) -> None:
        log = self.log
        message = DeleteCursor(log.id, self.name, log.link.once())
        await log.ask(message, Done, f"delete cursor {self.name} of", timeout)
