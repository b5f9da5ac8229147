"""The asyncio client: `async with anabranch.aio.connect(url) as service`.

Every call is tried until its `timeout` (seconds; by default the settings' `timeout_ms`), over as
many connections as that takes, and none ever does its work twice.
"""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from anabranch.client.appends import AppendsVerbs
from anabranch.client.bolt.link import Link
from anabranch.client.bolt.log import Log
from anabranch.client.bolt.receipts import Receipt
from anabranch.client.bolt.requests import append_by_name
from anabranch.client.catalogue import (
    Appends,
    Catalogue,
    Engine,
    check_engine,
    check_promises,
    engine_settings,
    front_settings,
)
from anabranch.client.driver import connecting, link
from anabranch.client.driver.closing import Closing
from anabranch.client.pool import PoolVerbs
from anabranch.client.session import arguments
from anabranch.client.session.arguments import VALUES, VALUES_SHOWN
from anabranch.client.session.endpoint import endpoint
from anabranch.client.session.records import Appended, checked
from anabranch.client.session.settings import Settings
from anabranch.client.session.verbs import refused
from anabranch.core.bolt.protocol.commands import Description, Done, EngineSettings
from anabranch.core.bolt.protocol.commands import Receipt as Promise
from anabranch.core.bolt.protocol.messages import (
    Adopt,
    DeleteLog,
    ListLogs,
    Survey,
)
from anabranch.core.bolt.protocol.queries import Census, Listing
from anabranch.core.errors import AnabranchError, BadRequest, LogExists
from anabranch.core.records.record import Record
from anabranch.core.types import LogId

if TYPE_CHECKING:
    from anabranch.client.erwin_log import ErwinLog, ErwinLogs
    from anabranch.client.lazy_log import LazyLogs
    from anabranch.client.logs import AsyncLog, NamedLog
    from anabranch.client.speculative_log import SpeculativeLog, SpeculativeLogs

CONNECT_TIMEOUT_S = 5.0


def connect(
    url: str, *, timeout: float = CONNECT_TIMEOUT_S, settings: Settings | None = None
) -> "Connecting":
    """A service to await, or to enter with `async with`: leaving it closes it.

    `anabranch://[token@]host[:port]`, or several `host:port` of one pool with commas between; the
    port is 7420 if it isn't said. `anabranchs://` is TLS, its authority named by `?ca=FILE`.
    """
    return Connecting(endpoint(url), settings, timeout)


class Connecting(connecting.Connecting["Service"]):
    """A service that isn't reached yet."""

    _link: Link | None = None

    @property
    def obstacle(self) -> AnabranchError | None:
        """What stood in the way last, while something is tried again; None if nothing did."""
        return None if self._link is None else self._link.session.obstacle

    def _made(self) -> "tuple[Link, Service]":
        self._link = Link(self._where, self._settings)
        return self._link, Service(self._link)

    async def _answered(self, made: "Service") -> None:
        await made.survey(timeout=self._timeout)


class Service(AppendsVerbs, PoolVerbs, Closing):
    """A connection to the log service, kept up by itself."""

    def __init__(self, link: Link) -> None:
        super().__init__(link)
        self._catalogue = Catalogue(link)
        self._speculative: SpeculativeLogs | None = None
        self._erwin: ErwinLogs | None = None
        self._lazy: LazyLogs | None = None

    @property
    def endpoint(self) -> str:
        """Where the service listens, as it was given."""
        return str(self._link.endpoint)

    @property
    def settings(self) -> Settings:
        """As the service was connected with."""
        return self._link.session.settings

    def receipt(self, text: str) -> Receipt:
        """A receipt as it was, from what `str` gave of it, or HTTP. BadRequest if it is none."""
        return Receipt(self._link, Promise.parse(arguments.text("a receipt", text)))

    def guard(self, scope: str, epoch: int) -> None:
        """Change something only while nobody of a higher epoch has in this scope: of several
        programs that are elected for the same, one whose turn is over is refused as Deposed.

        From here on this goes with whatever this service and its logs change, appends excepted.
        """
        self._link.session.guard(scope, epoch)

    @overload
    async def create(
        self,
        name: str,
        *,
        engine: Literal["bolt"] = "bolt",
        append: Appends = "direct",
        sequencers: int | None = None,
        durability: Literal["", "fsync", "memory"] = "",
        why: str = "",
        by: str | None = None,
        owner: str = "",
        timeout: float | None = None,
    ) -> Log: ...

    @overload
    async def create(  # whoever calls it names them
        self,
        name: str,
        *,
        engine: Literal["belfast"],
        shards: int = 1,
        replicas: int | None = None,
        sequencers: int | None = None,
        addresses: Sequence[str] = (),
        cluster: str = "",
        why: str = "",
        by: str | None = None,
        owner: str = "",
        timeout: float | None = None,
    ) -> "SpeculativeLog": ...

    @overload
    async def create(  # whoever calls it names them
        self,
        name: str,
        *,
        engine: Literal["erwin"],
        shards: int = 1,
        replicas: int | None = None,
        sequencers: int | None = None,
        addresses: Sequence[str] = (),
        cluster: str = "",
        mode: Literal["", "m", "st"] = "",
        durability: Literal["", "fsync", "memory"] = "",
        black_box: str = "",
        why: str = "",
        by: str | None = None,
        owner: str = "",
        timeout: float | None = None,
    ) -> "ErwinLog": ...

    async def create(  # noqa: PLR0913  # whoever calls it names them
        self,
        name: str,
        *,
        engine: Engine = "bolt",
        append: Appends = "direct",
        shards: int = 1,
        replicas: int | None = None,
        sequencers: int | None = None,
        addresses: Sequence[str] = (),
        cluster: str = "",
        mode: str = "",
        durability: str = "",
        black_box: str = "",
        why: str = "",
        by: str | None = None,
        owner: str = "",
        timeout: float | None = None,
    ) -> "Log | SpeculativeLog | ErwinLog":
        """A new root log; LogExists if the name is taken.

        `engine`: `bolt`, whose logs can be forked, `belfast`, whose logs are read ahead of their
        order, or `erwin`, whose logs are acknowledged ahead of it. Logs of the latter two have
        `shards`, each with `replicas`, and `sequencers` that order: 1 of each where the service
        runs the log in its own process, or else 2 replicas and 3 sequencers. A
        deployment that runs already has `addresses` and the name of its `cluster`.

        An Erwin log has a `mode` (`m`, the default: records go through the sequencers; `st`: to
        the shards at once) and a `durability` (`fsync`, the default: an append is on the disks of
        all sequencers when it is acknowledged; `memory`: in their memory). Its shards may keep
        their records in a `black_box`: `kafka://HOST:PORT/TOPIC` or `anabranch://HOST:PORT/LOG`.

        `append="lazy"`: appends to a Bolt log are acknowledged in one round trip by `sequencers` (1
        by default) with a `durability` as above, and committed in the background: they have
        receipts in place of positions. What isn't committed is lost if the durability is `memory`
        and all sequencers end.

        `owner`: who declares it. One that has a log already gets that one, whatever its name; one
        whose log is no more is told what became of it.
        """
        given = engine_settings(
            shards=shards,
            replicas=replicas,
            sequencers=sequencers,
            addresses=addresses,
            cluster=cluster,
            mode=mode,
            durability=durability,
            black_box=black_box,
        )
        return await self.made(
            name, engine, given, append=append, why=why, by=by, owner=owner, timeout=timeout
        )

    async def made(
        self,
        name: str,
        engine: Engine,
        settings: EngineSettings,
        *,
        append: Appends = "direct",
        why: str,
        by: str | None,
        owner: str,
        timeout: float | None,
    ) -> "Log | SpeculativeLog | ErwinLog":
        """What `create` does, of any engine."""
        author = self.settings.client if by is None else by
        front = front_settings(name, engine, append, settings)
        found = await self._catalogue.create(
            name, engine, settings, front=front, why=why, by=author, owner=owner, timeout=timeout
        )
        return await self.opened(found, timeout)

    @overload
    async def log(
        self, name: str | LogId, *, engine: None = None, timeout: float | None = None
    ) -> "AsyncLog": ...

    @overload
    async def log(
        self, name: str | LogId, *, engine: Literal["bolt"], timeout: float | None = None
    ) -> Log: ...

    @overload
    async def log(
        self, name: str | LogId, *, engine: Literal["belfast"], timeout: float | None = None
    ) -> "SpeculativeLog": ...

    @overload
    async def log(
        self, name: str | LogId, *, engine: Literal["erwin"], timeout: float | None = None
    ) -> "ErwinLog": ...

    async def log(
        self,
        name: str | LogId,
        *,
        engine: Engine | None = None,
        timeout: float | None = None,
    ) -> "AsyncLog":
        """A log or fork that exists, by its full name (`orders`, `orders--what-if`) or its id; else
        UnknownLog.

        It is of its engine's own type. A program that needs what only one engine has says so with
        `engine`: NotOffered if the log is another's.
        """
        return await self.found(name, engine, timeout)

    async def found(
        self, name: str | LogId, engine: Engine | None, timeout: float | None
    ) -> "Log | SpeculativeLog | ErwinLog":
        """What `log` does, of any engine."""
        if engine is not None:
            check_engine(engine)
        found = await self._catalogue.look_up(name, timeout)
        if engine is not None and found.engine != engine:
            raise refused(found.name, found.engine, f"verbs of the {engine} engine")
        return await self.opened(found, timeout)

    async def opened(
        self, found: Description, timeout: float | None
    ) -> "Log | SpeculativeLog | ErwinLog":
        """The log that the service has described; waits until its processes are known."""
        timeout_s = self._link.milliseconds(timeout) / 1_000
        if found.front is not None:
            return await self._lazy_logs().opened(found, timeout_s)
        if found.engine == "bolt":
            return Log(self._link, found)
        if found.engine == "erwin":
            return await self._erwin_logs().opened(found, timeout_s)
        if found.engine != "belfast":
            reason = f"this client knows no {found.engine} logs: take one of a later version"
            raise BadRequest(f"the log {found.name}", reason)
        if self._speculative is None:
            from anabranch.client.speculative_log import SpeculativeLogs

            link = self._link
            self._speculative = SpeculativeLogs(link.endpoint, self.settings, self._catalogue)
        return await self._speculative.opened(found, timeout_s)

    @property
    def _links(self) -> "list[link.Link[Any, Any]]":
        """To brokers, and to the nodes of logs of other engines that were opened."""
        speculative = [] if self._speculative is None else self._speculative.links
        erwin = [] if self._erwin is None else self._erwin.links
        lazy = [] if self._lazy is None else self._lazy.links
        return [self._link, *speculative, *erwin, *lazy]

    def _lazy_logs(self) -> "LazyLogs":
        if self._lazy is None:
            from anabranch.client.lazy_log import LazyLogs

            self._lazy = LazyLogs(self._catalogue, self._link)
        return self._lazy

    def _erwin_logs(self) -> "ErwinLogs":
        if self._erwin is None:
            from anabranch.client.erwin_log import ErwinLogs

            self._erwin = ErwinLogs(self._link.endpoint, self.settings, self._catalogue)
        return self._erwin

    async def append(
        self,
        log: str,
        values: Iterable[bytes | Record],
        *,
        request_id: str,
        timeout: float | None = None,
    ) -> list[Appended[Receipt]]:
        """Append to the log of this name all of these records or none, once under this request id.

        Repeated within an hour, also by another program, it gives its first result. That holds even
        if the log was squashed or promoted meanwhile, when `log` finds no log to append to.
        """
        made = [checked(each) for each in arguments.several(VALUES, values, VALUES_SHOWN)]
        link = self._link
        return await append_by_name(link, log, made, request_id, link.milliseconds(timeout))

    @overload
    async def ensure(
        self,
        name: str,
        *,
        engine: Literal["bolt"] = "bolt",
        append: Appends = "direct",
        sequencers: int | None = None,
        durability: Literal["", "fsync", "memory"] = "",
        why: str = "",
        timeout: float | None = None,
    ) -> Log: ...

    @overload
    async def ensure(
        self,
        name: str,
        *,
        engine: Literal["belfast"],
        shards: int = 1,
        replicas: int | None = None,
        sequencers: int | None = None,
        why: str = "",
        timeout: float | None = None,
    ) -> "SpeculativeLog": ...

    @overload
    async def ensure(  # whoever calls it names them
        self,
        name: str,
        *,
        engine: Literal["erwin"],
        shards: int = 1,
        replicas: int | None = None,
        sequencers: int | None = None,
        mode: Literal["", "m", "st"] = "",
        durability: Literal["", "fsync", "memory"] = "",
        black_box: str = "",
        why: str = "",
        timeout: float | None = None,
    ) -> "ErwinLog": ...

    async def ensure(  # noqa: PLR0913  # whoever calls it names them
        self,
        name: str,
        *,
        engine: Engine = "bolt",
        append: Appends = "direct",
        shards: int = 1,
        replicas: int | None = None,
        sequencers: int | None = None,
        mode: str = "",
        durability: str = "",
        black_box: str = "",
        why: str = "",
        timeout: float | None = None,
    ) -> "Log | SpeculativeLog | ErwinLog":
        """The root log of this name, made as by `create` if it doesn't exist; NotOffered if it is
        another engine's. BadRequest if its mode, durability or black box is another one than asked
        for, or its appends are direct and are to be lazy: `set_appends` makes them lazy.
        """
        given = engine_settings(
            shards=shards,
            replicas=replicas,
            sequencers=sequencers,
            addresses=(),
            cluster="",
            mode=mode,
            durability=durability,
            black_box=black_box,
        )
        return await self.ensured(name, engine, given, append=append, why=why, timeout=timeout)

    async def ensured(
        self,
        name: str,
        engine: Engine,
        settings: EngineSettings,
        *,
        append: Appends = "direct",
        why: str,
        timeout: float | None,
    ) -> "Log | SpeculativeLog | ErwinLog":
        """What `ensure` does, of any engine."""
        try:
            return await self.made(
                name,
                engine,
                settings,
                append=append,
                why=why,
                by=None,
                owner="",
                timeout=timeout,
            )
        except LogExists:
            found = await self.found(name, engine, timeout)
        if append == "lazy" and found.description.front is None:
            reason = "it exists, and its appends are direct: set_appends makes them lazy"
            raise BadRequest(f"log {name} with lazy appends", reason)
        check_promises(found.description, settings)
        return found

    async def logs(
        self,
        prefix: str = "",
        *,
        tree: str | None = None,
        owner: str = "",
        timeout: float | None = None,
    ) -> AsyncGenerator[Description, None]:
        """Every log and fork, in order of name; `tree` confines it to one root and its forks,
        `owner` to those whose owner's name begins so.
        """
        link, after, more = self._link, "", True
        while more:
            message = ListLogs(prefix, tree, after, owner=owner)
            listing = await link.ask(message, Listing, "list logs", link.milliseconds(timeout))
            for description in listing.logs:
                yield description
                after = description.name
            more = listing.more

    async def delete(
        self, log: "str | NamedLog", *, force: bool = False, timeout: float | None = None
    ) -> None:
        """Delete a root log; `force` squashes its continuous forks, severed ones keep what they
        need.
        """
        link = self._link
        root = await self._catalogue.look_up(log, timeout) if isinstance(log, str) else log
        message = DeleteLog(root.id, link.once(), force)
        await link.ask(message, Done, f"delete {root.name}", link.milliseconds(timeout))

    async def adopt(
        self, log: "str | NamedLog", owner: str, *, timeout: float | None = None
    ) -> Description:
        """Let this owner declare the log from now on; OwnedByAnother if another does."""
        link = self._link
        whose = await self._catalogue.look_up(log, timeout) if isinstance(log, str) else log
        message = Adopt(whose.id, owner, link.once())
        what = f"adopt {whose.name}" if owner else f"release {whose.name}"
        return await link.ask(message, Description, what, link.milliseconds(timeout))

    async def release(self, log: "str | NamedLog", *, timeout: float | None = None) -> Description:
        """Let nobody declare the log from now on; it stays as it is."""
        return await self.adopt(log, "", timeout=timeout)

    async def survey(self, *, timeout: float | None = None) -> Census:
        """What the cluster is called and how much it holds."""
        link = self._link
        return await link.ask(Survey(), Census, "survey", link.milliseconds(timeout))
