"""The client for programs without an event loop: `with anabranch.connect(url) as service`.

The same names as in `anabranch.aio`, each waiting for what it does. A thread runs the asyncio
client; any number of threads may use it.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Literal, cast, overload

from anabranch.client import aio
from anabranch.client.bolt.compactors import LEASE_S as COMPACTOR_LEASE_S
from anabranch.client.bolt.sync_compactors import CompactorJob
from anabranch.client.bolt.sync_log import Log, Receipt, waiting
from anabranch.client.bolt.sync_scans import ScanPlan
from anabranch.client.catalogue import Appends, Engine, engine_settings
from anabranch.client.driver.closing import SyncClosing
from anabranch.client.driver.handover import Handover, each
from anabranch.client.driver.loop import LoopThread
from anabranch.client.session.arguments import VALUES, VALUES_SHOWN, several
from anabranch.client.session.records import Appended
from anabranch.client.session.settings import Settings
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.bolt.protocol.compactors import Compactor
from anabranch.core.bolt.protocol.queries import BrokerSeat, Census
from anabranch.core.bolt.protocol.scans import Erased, Plan, Plans
from anabranch.core.records.record import Record
from anabranch.core.types import LogId

if TYPE_CHECKING:
    from anabranch.client import erwin_log, lazy_log, speculative_log
    from anabranch.client.logs import AnyLog, NamedLog
    from anabranch.client.sync_erwin_log import ErwinLog
    from anabranch.client.sync_speculative_log import SpeculativeLog


def connect(
    url: str, *, timeout: float = aio.CONNECT_TIMEOUT_S, settings: Settings | None = None
) -> "Service":
    """A service that has answered; use it with `with`, or close it.

    `anabranch://[token@]host[:port]`, or several `host:port` of one pool with commas between; the
    port is 7420 if it isn't said. `anabranchs://` is TLS, its authority named by `?ca=FILE`.
    """
    connecting = aio.connect(url, timeout=timeout, settings=settings)
    with ExitStack() as failing:
        thread = LoopThread()
        failing.callback(thread.stop)
        service = Service(thread, thread.run(connecting.opened()))
        failing.pop_all()
    return service


class Service(SyncClosing):
    """A connection to the log service, kept up by itself."""

    def __init__(self, thread: LoopThread, service: aio.Service) -> None:
        self._loop = Handover(thread)
        self._closing = self._service = service

    @property
    def endpoint(self) -> str:
        """Where the service listens, as it was given."""
        return self._service.endpoint

    @property
    def settings(self) -> Settings:
        """As the service was connected with."""
        return self._service.settings

    def receipt(self, text: str) -> Receipt:
        """A receipt as it was, from what `str` gave of it, or HTTP. BadRequest if it is none."""
        return Receipt(self._loop, self._service.receipt(text))

    def guard(self, scope: str, epoch: int) -> None:
        """Change something only while nobody of a higher epoch has in this scope: of several
        programs that are elected for the same, one whose turn is over is refused as Deposed.

        From here on this goes with whatever this service and its logs change, appends excepted.
        """
        self._service.guard(scope, epoch)

    @overload
    def create(
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
    def create(  # whoever calls it names them
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
    def create(  # whoever calls it names them
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

    def create(  # noqa: PLR0913  # whoever calls it names them
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
        made = self._service.made(
            name, engine, given, append=append, why=why, by=by, owner=owner, timeout=timeout
        )
        return self._held(self._loop.run(made))

    @overload
    def log(
        self, name: str | LogId, *, engine: None = None, timeout: float | None = None
    ) -> "AnyLog": ...

    @overload
    def log(
        self, name: str | LogId, *, engine: Literal["bolt"], timeout: float | None = None
    ) -> Log: ...

    @overload
    def log(
        self, name: str | LogId, *, engine: Literal["belfast"], timeout: float | None = None
    ) -> "SpeculativeLog": ...

    @overload
    def log(
        self, name: str | LogId, *, engine: Literal["erwin"], timeout: float | None = None
    ) -> "ErwinLog": ...

    def log(
        self,
        name: str | LogId,
        *,
        engine: Engine | None = None,
        timeout: float | None = None,
    ) -> "AnyLog":
        """A log or fork that exists, by its full name (`orders`, `orders--what-if`) or its id; else
        UnknownLog.

        It is of its engine's own type. A program that needs what only one engine has says so with
        `engine`: NotOffered if the log is another's.
        """
        return self._held(self._loop.run(self._service.found(name, engine, timeout)))

    def _held(
        self, log: "aio.Log | speculative_log.SpeculativeLog | erwin_log.ErwinLog"
    ) -> "Log | SpeculativeLog | ErwinLog":
        if isinstance(log, aio.Log):
            if log.description.front is None:
                return Log(self._loop, log)
            from anabranch.client.sync_lazy_log import LazyLog

            return LazyLog(self._loop, cast("lazy_log.LazyLog", log))
        if log.engine == "erwin":
            from anabranch.client.sync_erwin_log import ErwinLog

            return ErwinLog(self._loop, cast("erwin_log.ErwinLog", log))
        from anabranch.client.sync_speculative_log import SpeculativeLog

        return SpeculativeLog(self._loop, cast("speculative_log.SpeculativeLog", log))

    def set_appends(
        self,
        log: "str | NamedLog",
        append: Appends,
        *,
        sequencers: int | None = None,
        durability: Literal["", "fsync", "memory"] = "",
        timeout: float | None = None,
    ) -> Log:
        """Make the appends of a Bolt log that exists, or of a fork of it, `lazy`, as `create` with
        `append="lazy"` does for a new one; or lazy ones `direct`. The log as it is from now on.

        Programs that append have to open the log anew: until then their appends are refused as
        LazyAppendsOnly unless they are in the log already, or as OutcomeUnknown by a front that
        ends. A `request_id` counts only on its side of the change. A front ends when all that it
        has acknowledged is in the log, which this waits for; a receipt whose position nobody has
        asked for by then gets none. Promotable forks have direct appends only, and a log that had a
        lazy front can't have another.
        """
        which = log if isinstance(log, str) else log.name
        done = self._service.set_appends(
            which, append, sequencers=sequencers, durability=durability, timeout=timeout
        )
        return cast("Log", self._held(self._loop.run(done)))

    def append(
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
        # Iterated over here: a generator may ask this client for something, which the loop itself
        # may not.
        found = list(several(VALUES, values, VALUES_SHOWN))
        done = self._service.append(log, found, request_id=request_id, timeout=timeout)
        return [waiting(self._loop, each) for each in self._loop.run(done)]

    @overload
    def ensure(
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
    def ensure(
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
    def ensure(  # whoever calls it names them
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

    def ensure(  # noqa: PLR0913  # whoever calls it names them
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
        found = self._service.ensured(name, engine, given, append=append, why=why, timeout=timeout)
        return self._held(self._loop.run(found))

    def logs(
        self,
        prefix: str = "",
        *,
        tree: str | None = None,
        owner: str = "",
        timeout: float | None = None,
    ) -> Iterator[Description]:
        """Every log and fork, in order of name; `tree` confines it to one root and its forks,
        `owner` to those whose owner's name begins so.
        """
        found = self._service.logs(prefix, tree=tree, owner=owner, timeout=timeout)
        return each(self._loop, found)

    def delete(
        self, log: "str | NamedLog", *, force: bool = False, timeout: float | None = None
    ) -> None:
        """Delete a root log; `force` squashes its continuous forks, severed ones keep what they
        need.
        """
        self._loop.run(self._service.delete(log, force=force, timeout=timeout))

    def adopt(
        self, log: "str | NamedLog", owner: str, *, timeout: float | None = None
    ) -> Description:
        """Let this owner declare the log from now on; OwnedByAnother if another does."""
        return self._loop.run(self._service.adopt(log, owner, timeout=timeout))

    def release(self, log: "str | NamedLog", *, timeout: float | None = None) -> Description:
        """Let nobody declare the log from now on; it stays as it is."""
        return self.adopt(log, "", timeout=timeout)

    def survey(self, *, timeout: float | None = None) -> Census:
        """What the cluster is called and how much it holds."""
        return self._loop.run(self._service.survey(timeout=timeout))

    def brokers(self, *, timeout: float | None = None) -> list[BrokerSeat]:
        """The pool, in order of name: where each listens, its state, and how much it serves."""
        return self._loop.run(self._service.brokers(timeout=timeout))

    def drain_broker(
        self, name: str, epoch: int | None = None, *, timeout: float | None = None
    ) -> None:
        """Place nothing more on this broker, and what is on it elsewhere; it goes on serving.

        `epoch`: of its life, by default the one it is in now; UnknownBroker if there is none such.
        """
        self._loop.run(self._service.drain_broker(name, epoch, timeout=timeout))

    def forget_broker(
        self, name: str, epoch: int | None = None, *, timeout: float | None = None
    ) -> None:
        """Take a broker that is lost or draining out of the pool; BrokerInUse if it is neither.

        If it lives after all, it ends. `epoch`: as of `drain_broker`.
        """
        self._loop.run(self._service.forget_broker(name, epoch, timeout=timeout))

    def plans(self, *, timeout: float | None = None) -> Plans:
        """Every scan plan that is alive, the oldest first, and the garbage that they hold."""
        return self._loop.run(self._service.plans(timeout=timeout))

    def scan_plan(self, description: Plan) -> ScanPlan:
        """A scan plan that another process has made, or that was listed."""
        return ScanPlan(self._loop, self._service.scan_plan(description))

    def compactor(
        self, name: str, *, lease: float = COMPACTOR_LEASE_S, timeout: float | None = None
    ) -> CompactorJob:
        """Register a job that copies small extents of logs: it lives for so many seconds, and for
        as long as it is renewed. TooMany if there are `compactors_max`.
        """
        made = self._service.compactor(name, lease=lease, timeout=timeout)
        return CompactorJob(self._loop, self._loop.run(made))

    def running_compactor(self, description: Compactor) -> CompactorJob:
        """A compactor that another process has registered, or that was listed."""
        return CompactorJob(self._loop, self._service.running_compactor(description))

    def compactors(self, *, timeout: float | None = None) -> list[Compactor]:
        """Every compactor, the oldest first, with those that have ended not long ago."""
        return self._loop.run(self._service.compactors(timeout=timeout))

    def erase_garbage(self, *, timeout: float | None = None) -> Erased:
        """End every scan plan, and delete now what nothing refers to any more. Reads that are under
        way may miss it, and fail.
        """
        return self._loop.run(self._service.erase_garbage(timeout=timeout))
