"""What the service keeps of logs of every engine, as a client asks for it."""
# ruff: noqa: ASYNC109  # a timeout here travels with the request: its outcome is told, not cut off

import asyncio
from collections.abc import Iterable
from typing import Any, Literal

from msgspec.structs import replace

from anabranch.client.bolt.link import Link
from anabranch.client.session import arguments, endpoint
from anabranch.core.bolt.protocol.commands import Description, EngineSettings
from anabranch.core.bolt.protocol.messages import (
    CreateLog,
    Describe,
    SetAppends,
    SetQuota,
    SetSettings,
)
from anabranch.core.errors import BadRequest, Unavailable
from anabranch.core.quota import Quota
from anabranch.core.types import LogId

Engine = Literal["bolt", "belfast", "erwin"]
ENGINES: tuple[Engine, ...] = ("bolt", "belfast", "erwin")

_LOOK_S = 0.1
"""How often the service is asked whether a front has ended."""
_COUNT_END = 1 << 31
"""Of shards and the like; the server says how many it really takes."""
NOTHING_GIVEN = EngineSettings(replicas=0, sequencers=0)
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
    black_box: Any = "",
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
        black_box=arguments.text("a black box", black_box),
    )


Appends = Literal["direct", "lazy"]


def front_settings(
    name: str, engine: str, append: str, given: EngineSettings
) -> EngineSettings | None:
    """The lazy front that a program asks for; None for direct appends."""
    if append == "direct":
        return None
    if append != "lazy":
        raise BadRequest(f"append={append!r}", "a log's appends are 'direct' or 'lazy'")
    if engine != "bolt":
        raise BadRequest(f"{engine} log {name}", "only appends of bolt logs can be lazy")
    if given != replace(NOTHING_GIVEN, sequencers=given.sequencers, durability=given.durability):
        reason = "of a bolt log with lazy appends only sequencers and durability can be said"
        raise BadRequest(name, reason)
    return EngineSettings(sequencers=given.sequencers, durability=given.durability)


def check_promises(found: Description, asked: EngineSettings) -> None:
    """BadRequest if a log that exists, or its lazy front, promises something else than was asked.

    Only what was asked by name counts, and only what a log keeps for good: shards, replicas and
    sequencers may have become more or fewer since the log was created.
    """
    kept = found.settings or found.front
    if kept is None:
        return
    for what, wanted, has in (
        ("mode", asked.mode, kept.mode),
        ("durability", asked.durability, kept.durability),
        ("black box", asked.black_box, kept.black_box),
    ):
        if wanted and wanted != has:
            own = f"with the {what} {has}" if has else f"without a {what}"
            reason = f"it exists already, {own}, and keeps that: choose another name"
            raise BadRequest(f"log {found.name} with the {what} {wanted}", reason)


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
        front: EngineSettings | None = None,
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
        elif front is not None:
            message = replace(message, front=front)
        elif settings != NOTHING_GIVEN:
            raise BadRequest(
                "a bolt log", "only logs of other engines have shards and what goes with them"
            )
        found = await link.ask(message, Description, f"create {name}", link.milliseconds(timeout))
        if found.engine != engine and not owner:
            # Some servers were upgraded, and this one wasn't.
            made = f"a log of the {found.engine} engine was made instead: delete it"
            raise BadRequest(f"{engine} log {name}", f"{made}, and {_UPGRADE}")
        made_with = found.settings.black_box if found.settings is not None else ""
        if made_with != settings.black_box and not owner:
            made = "the server made a log with journals of its own: delete it"
            raise BadRequest(f"a black box for {name}", f"{made}, and upgrade the server")
        if engine == "bolt" and front is not None and found.front is None and not owner:
            made = "a log with direct appends was made instead: delete it"
            raise BadRequest(f"lazy log {name}", f"the server is too old for it: {made}")
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

    async def set_appends(
        self, name: str | LogId, front: EngineSettings | None, timeout: float | None = None
    ) -> Description:
        """None: direct ones. Returns when the log's front has ended."""
        link = self._link
        found = await self.look_up(name, timeout)
        message = SetAppends(found.id, front, link.once())
        what = f"make appends to {found.name} {'lazy' if front else 'direct'}"
        made = await link.ask(message, Description, what, link.milliseconds(timeout))
        try:
            async with asyncio.timeout(link.milliseconds(timeout) / 1_000):
                while front is None and made.front is not None:
                    await asyncio.sleep(_LOOK_S)
                    made = await self.look_up(made.id)
        except TimeoutError:
            reason = "its lazy front has yet to empty its rings, and goes on doing so"
            raise Unavailable(f"log {found.name} with direct appends", reason) from None
        return made

    async def add_shards(self, log: LogId, count: int, timeout: float | None = None) -> None:
        """Let whoever runs the log's processes run those of so many more shards."""
        count = arguments.number("shards to add", count, _COUNT_END)
        link = self._link
        found = await self.look_up(log, timeout)
        settings = found.settings
        assert settings is not None, "a log of another engine has settings"
        more = replace(settings, shards=settings.shards + count)
        message = SetSettings(log, more, link.once())
        what = f"add shards to {found.name}"
        await link.ask(message, Description, what, link.milliseconds(timeout))
