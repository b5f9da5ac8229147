"""Logs of another engine in one catalogue with Bolt's: clients declare them, replace their settings
and delete them, and everything that they are told is judged.

- N1: two logs that are listed together have different names and different owners.
- N2: what was acknowledged is listed until somebody deletes it, and not afterwards.
- N3: a log that is listed was asked for, as its engine, name and settings say: none is half made.
- N4: a log's settings are the last that were acknowledged, or some that were asked for since.
- N5: Bolt itself serves none of them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random

from anabranch.core.bolt.protocol import messages
from anabranch.core.bolt.protocol.commands import Description, EngineSettings
from anabranch.core.bolt.protocol.messages import ClientMessage, ServerMessage
from anabranch.core.bolt.protocol.queries import Listing
from anabranch.core.errors import AnabranchError
from anabranch.core.types import MS, NEVER, LogId, Nanoseconds
from anabranch_sim.bolt.client import UNSURE, SimClient

Answer = ServerMessage | AnabranchError

ENGINE = "belfast"
NAMES = tuple(f"ticks-{nth}" for nth in range(5))
OWNERS = ("", "", "desk/a", "desk/b")


@dataclass(slots=True)
class Asked:
    """Something that a client wants done, and when it was told that it was."""

    invoked: int
    returned: int = NEVER
    refused: bool = False
    """It was not done, and never will be."""


@dataclass(slots=True)
class Declaration(Asked):
    name: str = ""
    owner: str = ""
    settings: EngineSettings = field(default_factory=EngineSettings)
    log: LogId | None = None
    """The one that it was told of."""


@dataclass(slots=True)
class Change(Asked):
    """Other settings for one log."""

    settings: EngineSettings = field(default_factory=EngineSettings)


@dataclass(slots=True)
class LogAccount:
    """What was told of one log."""

    name: str
    changes: list[Change] = field(default_factory=list[Change])
    deletions: list[Asked] = field(default_factory=list[Asked])
    told_at: int = NEVER
    """When somebody first knew that it is there."""

    def may_be_gone(self, by: int) -> bool:
        return any(each.invoked < by and not each.refused for each in self.deletions)

    def is_gone(self, since: int) -> bool:
        return any(each.returned < since and not each.refused for each in self.deletions)


def same(one: EngineSettings, other: EngineSettings) -> bool:
    """The cluster's name is filled in where none was given."""
    return _asked_for(one) == _asked_for(other)


def _asked_for(settings: EngineSettings) -> tuple[object, ...]:
    return settings.shards, settings.replicas, settings.sequencers, settings.addresses


class CatalogueAccount:
    """All that all clients asked and were told."""

    def __init__(self, stamp: Callable[[], int]) -> None:
        self.faults: list[str] = []
        self.logs: dict[LogId, LogAccount] = {}
        self.declarations: list[Declaration] = []
        self._stamp = stamp

    def told(self, asked: Asked, answer: Answer) -> None:
        """A refusal that may pass is not remembered: an earlier try may still be on its way."""
        if not isinstance(answer, AnabranchError):
            asked.returned = self._stamp()
        else:
            asked.refused = not (answer.may_pass or isinstance(answer, UNSURE))

    def described(self, told: Description, invoked: int) -> LogAccount:
        """Somebody is told of a log, in answer to what was asked then."""
        known = self.logs.get(told.id)
        if known is None:
            known = self.logs[told.id] = LogAccount(told.name)
        known.told_at = min(known.told_at, self._stamp())
        if known.is_gone(invoked):
            self._fault(f"N2: {told.name} ({told.id}) was deleted, and is described")
        self._check_whole(told, known)
        return known

    def listed(self, listing: Listing, invoked: int) -> None:
        returned = self._stamp()
        for what in ("id", "name", "owner"):
            values = [each for log in listing.logs if (each := getattr(log, what))]
            if len(set(values)) < len(values):
                self._fault(f"N1: two logs of one {what}: {sorted(values)}")
        ids = {log.id for log in listing.logs}
        for id, known in self.logs.items():
            if id not in ids and known.told_at < invoked and not known.may_be_gone(returned):
                self._fault(f"N2: {known.name} ({id}) was acknowledged, and isn't listed")
        for log in listing.logs:
            self.described(log, invoked)

    def refused_by_bolt(self, what: str, answer: Answer) -> None:
        if not isinstance(answer, AnabranchError):
            self._fault(f"N5: Bolt did {what} of a log of another engine")

    def check_settings(self, told: Description, invoked: int) -> None:
        """Nothing is asked for any more."""
        known, settings = self.logs[told.id], told.settings
        assert settings is not None, "it is whole, as was checked"
        writes = [each for each in self._writes(told.id, known) if not each.refused]
        for write in writes:
            later = any(
                write.returned < each.invoked and each.returned < invoked for each in writes
            )
            if not later and same(write.settings, settings):
                return
        self._fault(f"N4: {told.name} has {_asked_for(settings)}, and others came after these")

    def _writes(self, id: LogId, known: LogAccount) -> list[Change]:
        """Whoever declares a log under its owner again replaces its settings. A declaration that
        was not answered may be one of this log.
        """
        declared = [
            Change(each.invoked, each.returned, each.refused, each.settings)
            for each in self.declarations
            if each.log == id or (each.log is None and (each.name == known.name or each.owner))
        ]
        return [*known.changes, *declared]

    def _check_whole(self, told: Description, known: LogAccount) -> None:
        if told.engine != ENGINE or told.settings is None or told.tail:
            self._fault(f"N3: {told.name} ({told.id}) is of {told.engine} with {told.settings}")
            return
        if told.name != known.name:
            self._fault(f"N3: {known.name} ({told.id}) is now {told.name}")
        if not any(each.name == told.name and not each.refused for each in self.declarations):
            self._fault(f"N3: nobody has asked for {told.name} ({told.id})")
        wanted = [each.settings for each in self._writes(told.id, known)]
        if not any(same(each, told.settings) for each in wanted):
            self._fault(f"N3: nobody has asked for {told.name} with {_asked_for(told.settings)}")

    def _fault(self, says: str) -> None:
        self.faults.append(says)


class EngineClient:
    """One client's random calls on logs of the other engine, one after the other."""

    def __init__(
        self, client: SimClient, account: CatalogueAccount, calls: int, pause: Nanoseconds
    ) -> None:
        self.client = client
        self.account = account
        self.left = calls
        self.done = False
        self._pause = pause
        self._rng: Random = client.world.rng

    def next(self) -> None:
        if self.left <= 0:
            self.done = True
            return
        self.left -= 1
        self.client.world.after(self.client.world.between(0, self._pause), self._act)

    def settle(self, then: Callable[[], None]) -> None:
        """All of them, when nobody asks for anything any more: listed, and described one by one."""
        self._list(partial(self._settled, then))

    def _settled(self, then: Callable[[], None], answer: Answer, invoked: int) -> None:
        if isinstance(answer, Listing):
            for log in answer.logs:
                self.account.check_settings(log, invoked)
            then()
        else:
            self.client.world.after(100 * MS, partial(self.settle, then))

    def _act(self) -> None:
        logs = list(self.account.logs)
        if not logs or self._rng.random() < 0.3:
            self._declare()
            return
        log = self._rng.choice(logs[-6:])
        actions = (self._set, self._set, self._delete, self._describe, self._misuse, self._look)
        self._rng.choice(actions)(log)

    def _settings(self) -> EngineSettings:
        rng = self._rng
        return EngineSettings(
            shards=rng.randint(1, 9),
            replicas=rng.choice((1, 3)),
            sequencers=rng.choice((1, 3)),
            addresses=(f"host-{rng.randint(1, 9)}:1",),
        )

    def _ask(self, what: str, message: ClientMessage, then: Callable[[Answer, int], None]) -> None:
        invoked = self.client.world.stamp()

        def told(answer: Answer) -> None:
            then(answer, invoked)

        self.client.ask(what, message, None, told)

    def _declare(self) -> None:
        name, owner, settings = self._rng.choice(NAMES), self._rng.choice(OWNERS), self._settings()
        stamp = self.client.world.stamp()
        asked = Declaration(stamp, name=name, owner=owner, settings=settings)
        self.account.declarations.append(asked)

        def told(answer: Answer, invoked: int) -> None:
            self.account.told(asked, answer)
            if isinstance(answer, Description):
                asked.log = answer.id
                self.account.described(answer, invoked)
            self.next()

        message = messages.CreateLog(
            name, self._request(), self.client.name, "", owner, ENGINE, settings
        )
        self._ask(f"declare {name}", message, told)

    def _set(self, log: LogId) -> None:
        known, settings = self.account.logs[log], self._settings()
        asked = Change(self.client.world.stamp(), settings=settings)
        known.changes.append(asked)

        def told(answer: Answer, invoked: int) -> None:
            self.account.told(asked, answer)
            if isinstance(answer, Description):
                self.account.described(answer, invoked)
            self.next()

        message = messages.SetSettings(log, settings, self._request())
        self._ask(f"set {known.name}", message, told)

    def _delete(self, log: LogId) -> None:
        known = self.account.logs[log]
        asked = Asked(self.client.world.stamp())
        known.deletions.append(asked)

        def told(answer: Answer, _: int) -> None:
            self.account.told(asked, answer)
            self.next()

        self._ask(f"delete {known.name}", messages.DeleteLog(log, self._request()), told)

    def _describe(self, log: LogId) -> None:
        def told(answer: Answer, invoked: int) -> None:
            if isinstance(answer, Description):
                self.account.described(answer, invoked)
            self.next()

        self._ask(f"describe {self.account.logs[log].name}", messages.Describe(log), told)

    def _misuse(self, log: LogId) -> None:
        """What only a log of Bolt's own can do."""
        what, message = self._rng.choice(
            (
                ("a read", messages.Read(log, 0, 1, 1 << 10)),
                ("a trim", messages.Trim(log, 0, self._request())),
                ("a cursor", messages.CommitCursor(log, "mine", 0, self._request())),
            )
        )

        def told(answer: Answer, _: int) -> None:
            self.account.refused_by_bolt(what, answer)
            self.next()

        self._ask(f"{what} of {log}", message, told)

    def _look(self, _: LogId) -> None:
        self._list(lambda _answer, _invoked: self.next())

    def _list(self, then: Callable[[Answer, int], None]) -> None:
        def told(answer: Answer, invoked: int) -> None:
            if isinstance(answer, Listing):
                self.account.listed(answer, invoked)
            then(answer, invoked)

        self._ask("list logs of another engine", messages.ListLogs(engine=ENGINE), told)

    def _request(self) -> bytes:
        return self._rng.randbytes(16)
