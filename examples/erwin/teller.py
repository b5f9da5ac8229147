"""The clients of the bank: half of their transactions read, half of them write (LazyLog, 6.11)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from examples.erwin.bank import (
    READS,
    Account,
    Kind,
    Outcome,
    Transaction,
    TransactionServer,
    audit,
)
from examples.erwin.shared_log import SharedLog

from anabranch.core.types import Position

OPENING_CENTS = 1_000
AMOUNT_CENTS_MAX = 400
READ_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Business:
    """How much the bank does."""

    transactions: int
    clients: int = 4
    servers: int = 2
    accounts: int = 100
    """Of each server."""
    seed: int = 1


@dataclass(slots=True)
class Measured:
    """Latencies in seconds."""

    reads: list[float] = field(default_factory=list[float])
    writes: list[float] = field(default_factory=list[float])
    refused: int = 0


class Day:
    """Clients at work at a bank's servers."""

    def __init__(self, business: Business, servers: Sequence[TransactionServer]) -> None:
        self._business, self._servers = business, servers
        self._now = asyncio.get_running_loop().time
        self._number = 0
        self.measured = Measured()

    async def run(self) -> Measured:
        for server in range(len(self._servers)):
            await asyncio.gather(
                *(
                    self._servers[server].run(
                        Transaction(self._next(), Kind.CREATE, account, OPENING_CENTS)
                    )
                    for account in self._accounts(server)
                )
            )
        async with asyncio.TaskGroup() as clients:
            for client in range(self._business.clients):
                clients.create_task(self._client(client))
        return self.measured

    def _accounts(self, server: int) -> range:
        count = self._business.accounts
        return range(server * count, (server + 1) * count)

    def _next(self) -> int:
        self._number += 1
        return self._number

    async def _client(self, number: int) -> None:
        business = self._business
        rng = Random(business.seed * 1_000 + number)
        for _ in range(number, business.transactions, business.clients):
            server = rng.randrange(len(self._servers))
            asked = self._drawn(self._accounts(server), rng)
            began = self._now()
            record = await self._servers[server].run(asked)
            took = self._now() - began
            (self.measured.reads if asked.kind in READS else self.measured.writes).append(took)
            self.measured.refused += record.outcome is not Outcome.DONE

    def _drawn(self, accounts: range, rng: Random) -> Transaction:
        number, account = self._next(), rng.choice(accounts)
        if rng.random() < READ_SHARE:
            kind = rng.choice(READS)
            return Transaction(number, kind, account, to=rng.randrange(1, number))
        kind = rng.choice((Kind.DEPOSIT, Kind.WITHDRAW, Kind.TRANSFER))
        to: Account = rng.choice(accounts)
        return Transaction(number, kind, account, rng.randrange(1, AMOUNT_CENTS_MAX), to)


async def play(log: SharedLog, start: Position, business: Business) -> list[str]:
    """Run a bank on a log, from `start` on, and return what was wrong."""
    with TemporaryDirectory(prefix="anabranch-") as name:
        servers = [
            TransactionServer(log, Path(name) / f"server-{number}.db")
            for number in range(business.servers)
        ]
        measured = await Day(business, servers).run()
        balances, wrong = audit(await log.read(start))
        held: dict[Account, int] = {}
        for server in servers:
            held |= server.balances()
            server.close()
    if balances != held:
        wrong.append("the audit log ends with other balances than the servers' databases hold")
    answered = len(measured.reads) + len(measured.writes)
    if answered != business.transactions:
        wrong.append(f"{answered} of {business.transactions} transactions were answered")
    return wrong
