"""The brokers, scan plans and compactors of a service, as an asyncio client sees and moves them."""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

from anabranch.client.bolt.compactors import LEASE_S as COMPACTOR_LEASE_S
from anabranch.client.bolt.compactors import CompactorJob, registering
from anabranch.client.bolt.link import Link
from anabranch.client.bolt.scans import ScanPlan
from anabranch.core.bolt.protocol.commands import Done
from anabranch.core.bolt.protocol.compactors import Compactor, Compactors, ListCompactors
from anabranch.core.bolt.protocol.messages import DrainBroker, ForgetBroker, ListBrokers
from anabranch.core.bolt.protocol.queries import BrokerSeat, Pool
from anabranch.core.bolt.protocol.scans import Erased, EraseGarbage, ListPlans, Plan, Plans
from anabranch.core.errors import UnknownBroker


class PoolVerbs:
    """Base of a service."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def brokers(self, *, timeout: float | None = None) -> list[BrokerSeat]:
        """The pool, in order of name: where each listens, its state, and how much it serves."""
        link = self._link
        pool = await link.ask(ListBrokers(), Pool, "list brokers", link.milliseconds(timeout))
        return pool.brokers

    async def drain_broker(
        self, name: str, epoch: int | None = None, *, timeout: float | None = None
    ) -> None:
        """Place nothing more on this broker, and what is on it elsewhere; it goes on serving.

        `epoch`: of its life, by default the one it is in now; UnknownBroker if there is none such.
        """
        link = self._link
        message = DrainBroker(name, await self._life(name, epoch, timeout), link.once())
        await link.ask(message, Done, f"drain broker {name}", link.milliseconds(timeout))

    async def forget_broker(
        self, name: str, epoch: int | None = None, *, timeout: float | None = None
    ) -> None:
        """Take a broker that is lost or draining out of the pool; BrokerInUse if it is neither.

        If it lives after all, it ends. `epoch`: as of `drain_broker`.
        """
        link = self._link
        message = ForgetBroker(name, await self._life(name, epoch, timeout), link.once())
        await link.ask(message, Done, f"forget broker {name}", link.milliseconds(timeout))

    async def plans(self, *, timeout: float | None = None) -> Plans:
        """Every scan plan that is alive, the oldest first, and the garbage that they hold."""
        link = self._link
        return await link.ask(ListPlans(), Plans, "list scan plans", link.milliseconds(timeout))

    def scan_plan(self, description: Plan) -> ScanPlan:
        """A scan plan that another process has made, or that was listed."""
        return ScanPlan(self._link, description)

    async def erase_garbage(self, *, timeout: float | None = None) -> Erased:
        """End every scan plan, and delete now what nothing refers to any more. Reads that are under
        way may miss it, and fail.
        """
        link = self._link
        message = EraseGarbage(link.once())
        return await link.ask(message, Erased, "erase garbage", link.milliseconds(timeout))

    async def compactor(
        self, name: str, *, lease: float = COMPACTOR_LEASE_S, timeout: float | None = None
    ) -> CompactorJob:
        """Register a job that copies small extents of logs: it lives for so many seconds, and for
        as long as it is renewed. TooMany if there are `compactors_max`.
        """
        link = self._link
        message = registering(link, name, lease)
        what = f"register compactor {name}"
        made = await link.ask(message, Compactor, what, link.milliseconds(timeout))
        return CompactorJob(link, made)

    def running_compactor(self, description: Compactor) -> CompactorJob:
        """A compactor that another process has registered, or that was listed."""
        return CompactorJob(self._link, description)

    async def compactors(self, *, timeout: float | None = None) -> list[Compactor]:
        """Every compactor, the oldest first, with those that have ended not long ago."""
        link = self._link
        left = link.milliseconds(timeout)
        return (await link.ask(ListCompactors(), Compactors, "list compactors", left)).compactors

    async def _life(self, name: str, epoch: int | None, timeout: float | None) -> int:
        if epoch is not None:
            return epoch
        for seat in await self.brokers(timeout=timeout):
            if seat.name == name:
                return seat.epoch
        raise UnknownBroker(name)
