"""What the service keeps of logs of every engine, as a client asks for it."""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

from collections.abc import Iterable
from typing import Any, Literal

from msgspec.structs import replace

from anabranch.client.bolt.link import Link
from anabranch.client.session import arguments, endpoint
from anabranch.core.bolt.protocol.commands import Description, EngineSettings
from anabranch.core.bolt.protocol.messages import CreateLog, Describe, SetQuota
from anabranch.core.errors import BadRequest
from anabranch.core.quota import Quota
from anabranch.core.types import LogId

Engine = Literal["bolt", "belfast", "erwin"]
ENGINES: tuple[Engine, ...] = ("bolt", "belfast", "erwin")

_COUNT_END = 1 << 31
"""Of shards and the like; the server says how many it really takes."""
_NOTHING_GIVEN = EngineSettings(replicas=0, sequencers=0)
_UPGRADE = "upgrade the server before it makes logs of other engines than bolt"


def engine_settings(
    *,
    shards: Any,
    replicas: Any,
    sequencers: Any,
    addresses: Iterable[str],
    cluster: Any,
    mode: Any = "",
    durability: Any = "",
) -> EngineSettings:
    """What a program says of a log of another engine. BadRequest if no server could take it.

    `replicas` and `sequencers` may be None: the service decides.
    """
    several = tuple(arguments.several("the addresses", addresses, "['host:7440']"))
    for each in several:
        endpoint.address(arguments.text("an address", each))
    return EngineSettings(
        arguments.number("shards", shards, _COUNT_END),
        _count_or_default("replicas", replicas),
        _count_or_default("sequencers", sequencers),
        several,
        arguments.text("a cluster", cluster),
        mode=arguments.text("a mode", mode),
        durability=arguments.text("a durability", durability),
    )


def check_engine(engine: str) -> Engine:
    """BadRequest if this client knows none of that name."""
    for known in ENGINES:
        if engine == known:
            return known
    raise BadRequest(f"the engine {engine!r}", "there are bolt, belfast and erwin")


def _count_or_default(what: str, value: Any) -> int:
    """0, which no log can have, stands for the service's default."""
    if value is None:
        return 0
    count = arguments.number(what, value, _COUNT_END)
    if count == 0:
        raise BadRequest(what, "there must be one at least")
    return count


class Catalogue:
    """Of the service behind one link."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def create(
        self,
        name: str,
        engine: Engine,
        settings: EngineSettings,
        *,
        why: str,
        by: str,
        owner: str,
        timeout: float | None,
    ) -> Description:
        link = self._link
        for what, value in (("name", name), ("why", why), ("by", by), ("owner", owner)):
            arguments.text(what, value)
        message = CreateLog(name, link.once(), by, why, owner)
        check_engine(engine)
        if engine != "bolt":
            self._check_served(name, engine)
            message = replace(message, engine=engine, settings=settings)
        elif settings != _NOTHING_GIVEN:
            raise BadRequest(
                "a bolt log", "only logs of other engines have shards and what goes with them"
            )
        found = await link.ask(message, Description, f"create {name}", link.milliseconds(timeout))
        if found.engine != engine and not owner:
            # Some servers were upgraded, and this one wasn't.
            made = f"a {found.engine} log was made instead: delete it"
            raise BadRequest(f"{engine} log {name}", f"{made}, and {_UPGRADE}")
        return found

    def _check_served(self, name: str, engine: Engine) -> None:
        """A server that is too old to know of engines would make a Bolt log."""
        welcome = self._link.session.welcome
        if welcome is not None and engine not in welcome.engines:
            raise BadRequest(f"{engine} log {name}", f"the server is too old for it: {_UPGRADE}")

    async def look_up(self, log: str | LogId, timeout: float | None = None) -> Description:
        link = self._link
        if log == "":
            raise BadRequest("a log's name", "it is empty: say which log")
        what = f"look up {log}"
        return await link.ask(Describe(log), Description, what, link.milliseconds(timeout))

    async def set_quota(
        self, log: Description, quota: Quota, timeout: float | None = None
    ) -> Description:
        link = self._link
        message = SetQuota(log.id, quota, link.once())
        what = f"set the quota of {log.name}"
        return await link.ask(message, Description, what, link.milliseconds(timeout))
