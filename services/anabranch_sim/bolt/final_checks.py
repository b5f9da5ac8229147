"""After the healing: every fork decided, every receipt redeemed, every log read to its end."""

from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.bolt.protocol.messages import Records
from anabranch.core.bolt.protocol.queries import Listing, Pool
from anabranch.core.bolt.state.placement import READY
from anabranch.core.errors import AnabranchError
from anabranch.core.history.calls import Fate, Final
from anabranch.core.types import MS, LogId
from anabranch_sim.bolt.client import SimClient
from anabranch_sim.bolt.directory import Directory, Known
from anabranch_sim.bolt.workload import Answer, Caller

FATES = {"promoted": Fate.PROMOTED, "squashed": Fate.SQUASHED, "unknown-log": Fate.DELETED}


class FinalChecks(Caller):
    """Speaks to the service as any client does, until it knows everything."""

    def __init__(self, client: SimClient, clients: list[SimClient], directory: Directory) -> None:
        super().__init__(client, directory)
        self.clients = clients
        self.finals: list[Final] = []
        self.over = False
        self._phase = "it begins"
        self._queue: list[Known] = []

    def waiting_for(self) -> str:
        behind = [
            f"{stream.log} at {subscription.final}"
            for client in self.clients
            for subscription, stream in client.streams
            if self._behind(subscription.final, stream.log, subscription.error)
        ]
        return f"the epilogue hangs where {self._phase}; subscriptions behind: {behind}"

    def begin(self) -> None:
        self._phase = "all logs are listed"
        self.discover(self._listed)

    def _listed(self, answer: Answer) -> None:
        if isinstance(answer, AnabranchError):
            self.begin()
            return
        assert isinstance(answer, Listing)
        names = {told.name for told in answer.logs}
        for known in self.directory.living():
            known.over = known.name not in names
        undecided = self.directory.undecided()
        if undecided:
            self._phase = "forks are decided"
            fork = self.rng.choice(undecided)
            decide = self.promote if self.rng.random() < 0.5 else self.squash
            decide(fork, self.begin)
        else:
            self._redeem_all()

    def _redeem_all(self) -> None:
        """Everything is decided: every receipt can be redeemed at once."""
        self._phase = "receipts are redeemed"
        for client in self.clients:
            self.client.receipts += client.receipts
            client.receipts = []
        self._left = len(self.client.receipts)
        self._redeem_next()

    def _redeem_next(self) -> None:
        if self._left:
            self._left -= 1
            self.redeem(0, self._redeem_next)
            return
        for receipt, _ in self.client.receipts:
            fault = f"a receipt of {receipt.log} at {receipt.provisional} can't be redeemed"
            self.client.account.faults.append(fault)
        self._read_all()

    def _read_all(self) -> None:
        self._phase = "all logs are read"
        self._queue = list(self.directory.logs.values())
        self._next_log()

    def _next_log(self) -> None:
        if self._queue:
            self._known = self._queue.pop(0)
            self.describe(self._known, self._described)
        else:
            self._phase = "subscriptions catch up"
            self._await_streams()

    def _described(self, answer: Answer) -> None:
        known = self._known
        if isinstance(answer, Description):
            self._final = Final(
                log=known.log,
                name=answer.name,
                kind=answer.kind,
                parent=self.directory.ids.get(answer.parent) if answer.parent else None,
                fork_point=answer.fork_point,
                start=answer.start,
                tail=answer.tail,
                settled=answer.settled,
                promotable=answer.promotable,
            )
            self._page()
        elif isinstance(answer, AnabranchError) and answer.code in FATES:
            expired = "time to live" in str(answer.facts.get("reason", ""))
            fate = FATES[answer.code]
            self.finals.append(Final(log=known.log, name=known.name, fate=fate, expired=expired))
            self._next_log()
        else:
            self.describe(known, self._described)

    def _page(self) -> None:
        final = self._final
        first = final.start + len(final.records)
        if first < final.settled:
            self.read(self._known, first, 10_000, 0, self._paged)
        else:
            self.finals.append(final)
            self.read_cursors(self._known, self._cursors)

    def _paged(self, answer: Answer) -> None:
        if isinstance(answer, Records):
            final = self._final
            first = final.start + len(final.records)
            ids, origins = self.client.account.read(answer, first)
            final.records += ids
            final.origins += origins
            if not ids:
                fault = f"a read of {final.name} at {first} gave nothing below {final.settled}"
                self.client.account.faults.append(fault)
                final.settled = first
        self._page()

    def _cursors(self, answer: Answer) -> None:
        self._next_log()

    def _await_streams(self) -> None:
        """Every subscriber gets everything, and learns that it is final."""
        for client in self.clients:
            for subscription, stream in client.streams:
                if self._behind(subscription.final, stream.log, subscription.error):
                    self.client.world.after(50 * MS, self._await_streams)
                    return
        self._make_pool_whole()

    def _make_pool_whole(self) -> None:
        """Whoever was told to end, or forgotten, is back, and serves its part."""
        cluster = self.client.cluster
        if not cluster.is_group:
            self.over = True
            return
        self._phase = "the pool is whole"

        def told(answer: Answer) -> None:
            seats = answer.brokers if isinstance(answer, Pool) else []
            self.over = len(seats) == len(cluster.brokers) == [s.state for s in seats].count(READY)
            if not self.over:
                self.client.world.after(50 * MS, self._make_pool_whole)

        self.tend(told)

    def _behind(self, final: int, log: LogId, error: AnabranchError | None) -> bool:
        if error is not None:
            return False
        end = next((each for each in self.finals if each.log == log), None)
        return end is None or end.fate is not Fate.ALIVE or final < end.settled
