"""Which logs of other engines a cluster wants run here, asked of it in a thread of its own."""

import asyncio
from threading import Event, Thread

from msgspec.structs import replace

from anabranch.apps.embedded.folders import LogFolder
from anabranch.client.bolt.link import Link
from anabranch.client.session.endpoint import endpoint
from anabranch.client.session.settings import Settings
from anabranch.core.bolt.protocol.commands import FRONT, Description, EngineSettings
from anabranch.core.bolt.protocol.messages import Describe, ListLogs, SetSettings
from anabranch.core.bolt.protocol.queries import Listing
from anabranch.core.bolt.state.catalogue import ENGINES
from anabranch.core.errors import AnabranchError, Squashed
from anabranch.core.quota import Quota
from anabranch.shell.telemetry.log import Log

LOOK_S = 0.5
_PATIENCE_MS = 10_000


class Catalogue:
    """What was found by the last look; whoever starts and ends processes reads it."""

    def __init__(self, url: str, log: Log) -> None:
        self.wanted: dict[LogFolder, EngineSettings] | None = None
        """Logs without addresses, and those that were placed; None before the first look."""
        self.quotas: dict[LogFolder, Quota | None] = {}
        """Of all logs that the last look found."""
        self.deleted: frozenset[LogFolder] = frozenset()
        """Of those that were asked about, the ones that the catalogue says were deleted."""
        self._url = url
        self._log = log
        self._placed: dict[LogFolder, EngineSettings] = {}
        self._doubtful: frozenset[LogFolder] = frozenset()
        self._trouble = ""
        self._stop = Event()
        self._thread = Thread(target=lambda: asyncio.run(self._follow()), daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def place(self, folder: LogFolder, settings: EngineSettings) -> None:
        """The log's processes run, and are to be found by these settings."""
        self._placed = {**self._placed, folder: settings}

    def ask_about(self, folders: frozenset[LogFolder]) -> None:
        """Were these deleted?"""
        self._doubtful = folders

    async def _follow(self) -> None:
        link = Link(endpoint(self._url), Settings(client="anabranch up"))
        link.start()
        while not self._stop.is_set():
            try:
                await self._look(link)
                self._trouble = ""
            except AnabranchError as error:
                if error.code != self._trouble:
                    self._log.warning("can't read the catalogue", reason=error.message)
                self._trouble = error.code
            await asyncio.sleep(LOOK_S)
        link.close()

    async def _look(self, link: Link) -> None:
        logs = {
            LogFolder(
                each.id, each.created_at, each.name, FRONT if each.front else each.engine
            ): each
            for each in await self._foreign(link)
        }
        self.quotas = {folder: each.quota for folder, each in logs.items()}
        found = {
            folder: settings
            for folder, each in logs.items()
            if (settings := each.settings or each.front) is not None and not settings.embedded
        }
        placed = self._placed
        for folder, settings in placed.items():
            known = found.get(folder)
            if known is None:
                continue
            # The number of shards is for whoever has the log.
            there = replace(known, addresses=settings.addresses, cluster=settings.cluster)
            if known != there:
                message = SetSettings(folder.id, there, link.once())
                await link.ask(message, Description, f"place {folder.log}", _PATIENCE_MS)
        self.wanted = {
            folder: settings
            for folder, settings in found.items()
            if not settings.addresses or folder in placed or folder in self._doubtful
        }
        self.deleted = frozenset([each for each in self._doubtful if await _is_gone(link, each)])

    async def _foreign(self, link: Link) -> list[Description]:
        kinds = (*ENGINES, FRONT)
        return [each for kind in kinds for each in await self._of_engine(link, kind)]

    async def _of_engine(self, link: Link, engine: str) -> list[Description]:
        found: list[Description] = []
        after, more = "", True
        while more:
            message = ListLogs(after=after, engine=engine)
            listing = await link.ask(message, Listing, "list logs", _PATIENCE_MS)
            found += listing.logs
            after, more = (found[-1].name if found else ""), listing.more
        return found


async def _is_gone(link: Link, folder: LogFolder) -> bool:
    try:
        found = await link.ask(Describe(folder.id), Description, "describe", _PATIENCE_MS)
    except Squashed as error:
        return error.facts.get("log") == folder.log
    except AnabranchError:
        return False
    return folder.engine == FRONT and found.front is None
