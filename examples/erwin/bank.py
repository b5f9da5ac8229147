"""A bank whose every transaction, reads included, is in an audit log before it is answered
(LazyLog, 6.11).

Accounts are divided among servers, each with a database of its own. A server holds the accounts of
a transaction until the log has its audit record. An append that begins after another one was
acknowledged comes later in the log, so the log has each account's transactions in the order in
which they happened, although no server ever waits for a position.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from enum import Enum
from pathlib import Path

import msgspec
from examples.database import Database
from examples.erwin.shared_log import Entry, SharedLog

Account = int
Cents = int

_SCHEMA = """
CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
CREATE TABLE transactions (id INTEGER PRIMARY KEY, outcome TEXT NOT NULL);
"""
_PUT = "INSERT OR REPLACE INTO accounts VALUES (?, ?)"
_NOTE = "INSERT OR REPLACE INTO transactions VALUES (?, ?)"


class Kind(Enum):
    CREATE = "create"
    DEPOSIT = "deposit"
    WITHDRAW = "withdraw"
    TRANSFER = "transfer"
    BALANCE = "balance"
    STATUS = "status"


READS = (Kind.BALANCE, Kind.STATUS)


class Outcome(Enum):
    DONE = "done"
    NO_SUCH_ACCOUNT = "no such account"
    ACCOUNT_EXISTS = "account exists"
    NOT_ENOUGH_MONEY = "not enough money"
    NO_SUCH_TRANSACTION = "no such transaction"


class Transaction(msgspec.Struct, frozen=True):
    """A client's request. Its number identifies it, also for whoever asks for its status."""

    number: int
    kind: Kind
    account: Account
    amount: Cents = 0
    to: Account = 0
    """The account that a transfer goes to; the transaction that a status is asked of."""


class AuditRecord(msgspec.Struct, frozen=True):
    """A transaction, how it ended, and the balances that its accounts had afterwards."""

    transaction: Transaction
    outcome: Outcome
    balances: dict[Account, Cents]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(AuditRecord)


class TransactionServer:
    """Runs the transactions of its accounts, one at a time for each account."""

    def __init__(self, log: SharedLog, database: Path) -> None:
        self._log = log
        self._database = Database(database, _SCHEMA)
        self._locks: dict[Account, asyncio.Lock] = {}

    async def run(self, asked: Transaction) -> AuditRecord:
        """The transaction's outcome, which is in the audit log when this returns."""
        accounts = [asked.account]
        if asked.kind is Kind.TRANSFER and asked.to != asked.account:
            accounts.append(asked.to)
        async with AsyncExitStack() as held:
            # Always in the same order, so that two transfers don't wait for each other.
            for account in sorted(accounts):
                lock = self._locks.setdefault(account, asyncio.Lock())
                await held.enter_async_context(lock)
            balances = {account: self._balance(account) for account in accounts}
            outcome, changed = decide(asked, balances, known=self._knows(asked))
            record = AuditRecord(
                asked,
                outcome,
                {account: cents for account, cents in changed.items() if cents is not None},
            )
            # The audit record first: what isn't in the log hasn't happened.
            await self._log.append(_encoder.encode(record))
            if asked.kind not in READS:
                self._apply(record)
        return record

    def balances(self) -> dict[Account, Cents]:
        rows = self._database.rows("SELECT id, balance FROM accounts")
        return {int(str(account)): int(str(balance)) for account, balance in rows}

    def close(self) -> None:
        self._database.close()

    def _balance(self, account: Account) -> Cents | None:
        row = self._database.row("SELECT balance FROM accounts WHERE id = ?", account)
        return None if row is None else int(str(row[0]))

    def _knows(self, asked: Transaction) -> bool:
        if asked.kind is not Kind.STATUS:
            return False
        return self._database.row("SELECT id FROM transactions WHERE id = ?", asked.to) is not None

    def _apply(self, record: AuditRecord) -> None:
        self._database.begin()
        if record.outcome is Outcome.DONE:
            for account, balance in record.balances.items():
                self._database.change(_PUT, account, balance)
        self._database.change(_NOTE, record.transaction.number, record.outcome.value)
        self._database.commit()


def decide(
    asked: Transaction, balances: dict[Account, Cents | None], *, known: bool
) -> tuple[Outcome, dict[Account, Cents | None]]:
    """How a transaction ends, given its accounts' balances, and what they are afterwards."""
    if asked.kind is Kind.STATUS:
        return (Outcome.DONE if known else Outcome.NO_SUCH_TRANSACTION), balances
    balance = balances[asked.account]
    if asked.kind is Kind.CREATE:
        if balance is not None:
            return Outcome.ACCOUNT_EXISTS, balances
        return Outcome.DONE, {asked.account: asked.amount}
    if balance is None or None in balances.values():
        return Outcome.NO_SUCH_ACCOUNT, balances
    after = dict(balances)
    match asked.kind:
        case Kind.DEPOSIT:
            after[asked.account] = balance + asked.amount
        case Kind.WITHDRAW | Kind.TRANSFER if balance < asked.amount:
            return Outcome.NOT_ENOUGH_MONEY, balances
        case Kind.WITHDRAW:
            after[asked.account] = balance - asked.amount
        case Kind.TRANSFER:
            after[asked.account] = balance - asked.amount
            after[asked.to] = (after[asked.to] or 0) + asked.amount
        case Kind.BALANCE:
            pass
    return Outcome.DONE, after


def audit(entries: Sequence[Entry]) -> tuple[dict[Account, Cents], list[str]]:
    """Replay an audit log: the balances at its end, and every record that contradicts what the
    records before it say.
    """
    balances: dict[Account, Cents] = {}
    numbers: set[int] = set()
    wrong: list[str] = []
    for position, value in entries:
        record = _decoder.decode(value)
        asked = record.transaction
        if asked.number in numbers:
            wrong.append(f"{position}: transaction {asked.number} is in the log twice")
        before = {account: balances.get(account) for account in {asked.account, *record.balances}}
        if asked.kind is Kind.TRANSFER:
            before[asked.to] = balances.get(asked.to)
        known = record.outcome is Outcome.DONE  # which the server's own database decides
        outcome, after = decide(asked, before, known=known)
        said = {account: cents for account, cents in after.items() if cents is not None}
        if outcome is not record.outcome or said != record.balances:
            wrong.append(
                f"{position}: {asked.kind.value} {asked.number} ended as {record.outcome.value} "
                f"with {record.balances}, and the records before it say {outcome.value} with {said}"
            )
        if asked.kind is Kind.STATUS and known and asked.to not in numbers:
            wrong.append(f"{position}: transaction {asked.to} was known before it was logged")
        numbers.add(asked.number)
        if record.outcome is Outcome.DONE and asked.kind not in READS:
            balances.update(record.balances)
    return balances, wrong
