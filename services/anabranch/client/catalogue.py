"""What the service keeps of logs of every engine, as a client asks for it."""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

from anabranch.client.bolt.link import Link
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.bolt.protocol.messages import Describe, SetQuota
from anabranch.core.quota import Quota
from anabranch.core.types import LogId


class Catalogue:
    """Of the service behind one link."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def look_up(self, log: str | LogId, timeout: float | None = None) -> Description:
        link = self._link
        what = f"look up {log}"
        return await link.ask(Describe(log), Description, what, link.milliseconds(timeout))

    async def set_quota(
        self, log: Description, quota: Quota, timeout: float | None = None
    ) -> Description:
        link = self._link
        message = SetQuota(log.id, quota, link.once())
        what = f"set the quota of {log.name}"
        return await link.ask(message, Description, what, link.milliseconds(timeout))
