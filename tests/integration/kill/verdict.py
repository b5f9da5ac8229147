"""After the last kill: every fork decided, every receipt redeemed, every log read to its end."""

from contextlib import suppress
from random import Random

from tests.integration.kill.account import Account, now
from tests.integration.kill.actor import CURSORS

from anabranch.client.aio import Service
from anabranch.client.bolt.link import Link
from anabranch.client.bolt.log import Log
from anabranch.core.bolt.protocol.commands import Description, Receipt
from anabranch.core.bolt.protocol.messages import Redeem as RedeemMessage
from anabranch.core.bolt.protocol.queries import Settled
from anabranch.core.errors import AnabranchError, Squashed
from anabranch.core.history import check
from anabranch.core.history.calls import (
    Final,
    History,
    Promote,
    ReadCursor,
    RecordId,
    Redeem,
    Squash,
)
from anabranch.core.types import LogId
from anabranch_sim.bolt.final_checks import FATES

Promises = list[tuple[Receipt, list[RecordId]]]


class Epilogue:
    """Speaks to the service as any client does, until it knows everything."""

    def __init__(self, service: Service, seed: int) -> None:
        self.service = service
        self.account = Account(number=0)
        self.finals: list[Final] = []
        self.history = History()
        self._rng = Random(seed)

    async def settle(self) -> dict[LogId, int]:
        """Decide every fork, and see those off whose time is limited: how far each log is then."""
        while True:
            living = [told async for told in self.service.logs()]
            for told in living:
                self.account.known.setdefault(told.id, told)
            mortal = [told for told in living if told.expires_at is not None]
            undecided = [told for told in living if told.promotable and told.expires_at is None]
            if mortal:
                await self._outlive(await self.service.log(mortal[0].name, engine="bolt"))
            elif undecided:
                await self._decide(
                    await self.service.log(self._rng.choice(undecided).name, engine="bolt")
                )
            else:
                return {told.id: told.settled for told in living}

    async def judge(self, accounts: list[Account]) -> list[str]:
        """What is wrong with all that the clients saw, and with what is there in the end."""
        promises: Promises = []
        for account in accounts:
            self.account.known |= account.known
            promises += account.receipts
        root = next(iter(self.account.known.values())).root
        link = (await self.service.log(root, engine="bolt")).link
        for promise, records in promises:
            await self._redeem(link, promise, records)
        for told in self.account.known.values():
            await self._read(Log(link, told))
        history = History(finals=self.finals, ended=now())
        for account in (*accounts, self.account):
            history.calls += account.history.calls
        history.calls.sort(key=lambda call: call.invoked)
        self.history = history
        faults = [fault for account in (*accounts, self.account) for fault in account.faults]
        return faults + list(map(str, check(history)))

    async def _outlive(self, log: Log) -> None:
        """A subscriber is told when its fork has expired."""
        with suppress(Squashed):
            async for _ in log.subscribe():
                continue

    async def _decide(self, fork: Log) -> None:
        call: Promote | Squash
        if self._rng.random() < 0.5:
            call = Promote(client=0, log=fork.id, invoked=0)
            answer = await self.account.ask(call, fork.promote())
        else:
            call = Squash(client=0, log=fork.id, invoked=0)
            answer = await self.account.ask(call, fork.squash())
        if isinstance(answer, AnabranchError):
            raise answer

    async def _redeem(self, link: Link, promise: Receipt, records: list[RecordId]) -> None:
        """Everything is decided: every receipt can be redeemed at once."""
        call = Redeem(client=0, log=promise.log, invoked=0, records=records)

        def told(answer: Settled) -> None:
            call.into, call.position = self._id(answer.log), answer.position

        work = link.ask(RedeemMessage(promise), Settled, "redeem a receipt", 10_000)
        answer = await self.account.ask(call, work, told)
        if isinstance(answer, AnabranchError) and not isinstance(answer, Squashed):
            self.account.faults.append(f"{promise} can't be redeemed: {answer}")

    async def _read(self, log: Log) -> None:
        """All of it, as far as it is still there."""
        try:
            told = await log.describe()
        except AnabranchError as error:
            expired = "time to live" in str(error.facts.get("reason", ""))
            final = Final(log=log.id, name=log.name, fate=FATES[error.code], expired=expired)
            self.finals.append(final)
            return
        records = [each async for each in log.read(told.start)] if told.start < told.settled else []
        self.account.dense(told.start, records, f"all of {log.name}")
        self.finals.append(
            self._final(
                told,
                Final(
                    log=log.id,
                    name=log.name,
                    records=self.account.identify(records),
                    origins=[(each.origin_log, each.origin_position) for each in records],
                ),
            )
        )
        for name in CURSORS:
            call = ReadCursor(client=0, log=log.id, invoked=0, name=name)
            await self.account.ask(call, self._cursor(call, log))

    def _id(self, name: str) -> LogId:
        """Nobody here gives a name twice."""
        return {each.name: each.id for each in self.account.known.values()}[name]

    async def _cursor(self, call: ReadCursor, log: Log) -> None:
        call.position = await log.cursor(call.name).get()

    def _final(self, told: Description, final: Final) -> Final:
        final.kind, final.promotable = told.kind, told.promotable
        final.parent = None if told.parent is None else self._id(told.parent)
        final.fork_point, final.start = told.fork_point, told.start
        final.tail, final.settled = told.tail, told.settled
        return final
