"""`ports.BlackBox` over a Bolt log of any server or cluster (decision 63)."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import islice
from threading import Lock

from anabranch.client.bolt.sync_log import Log
from anabranch.client.session.settings import Settings
from anabranch.client.sync import Service, connect
from anabranch.client.sync_lazy_log import LazyLog
from anabranch.core.errors import (
    AnabranchError,
    BlackBoxChanged,
    BlackBoxFailed,
    BlackBoxUnfit,
    NotOffered,
    Squashed,
    UnknownLog,
)

CONNECT_S = 5.0
_READ_RECORDS = 64
_SETTINGS = Settings(client="anabranch-black-box", timeout_ms=10_000)


class BoltLog:
    """One log, created if it isn't there."""

    def __init__(self, server: str, name: str) -> None:
        self.where = f"Bolt log {name} at {server}"
        self._url = f"anabranch://{server}"
        self._name = name
        self._service: Service | None = None
        self._opened: Log | None = None
        self._connecting = Lock()

    def bounds(self) -> tuple[int, int]:
        with self._log() as log:
            return log.describe().start, log.tail()

    @property
    def begin(self) -> int:
        """An answer to an append doesn't tell it."""
        return 0

    def look(self) -> tuple[int, int]:
        return self.bounds()

    def append(self, records: Sequence[bytes]) -> list[int]:
        with self._log() as log:
            positions = [done.position for done in log.append_many(records)]
            known = [each for each in positions if each is not None]
            if len(known) < len(records):
                raise BlackBoxFailed(self.where, "a promotable fork of it is undecided")
            return known

    def read(self, start: int) -> list[tuple[int, bytes]]:
        with self._log() as log:
            found = islice(log.read(start, _READ_RECORDS), _READ_RECORDS)
            records = [(each.position, each.value or b"") for each in found]
            if not records:
                raise BlackBoxFailed(self.where, f"no record came from {start} on")
            return records

    def trim(self, below: int) -> None:
        with self._log() as log:
            log.trim(below)

    def close(self) -> None:
        with self._connecting:
            if self._service is not None:
                self._service.close(wait=False)
            self._service = self._opened = None

    @contextmanager
    def _log(self) -> Generator[Log]:
        try:
            yield self._connected()
        except (BlackBoxFailed, BlackBoxUnfit):
            raise
        except (UnknownLog, Squashed) as error:
            # The handle is of one log: another of the same name isn't it.
            raise BlackBoxChanged(self.where, "it was deleted") from error
        except AnabranchError as error:
            raise BlackBoxFailed(self.where, error.message) from error

    def _connected(self) -> Log:
        with self._connecting:
            if self._opened is None:
                if self._service is None:
                    self._service = connect(self._url, timeout=CONNECT_S, settings=_SETTINGS)
                self._opened = self._fit(self._service)
            return self._opened

    def _fit(self, service: Service) -> Log:
        """Raises BlackBoxUnfit for a log that doesn't say where a record is once it has it."""
        try:
            found = service.ensure(self._name, why="the records of an Erwin log's shard")
        except NotOffered as error:
            reason = f"it is a log of the {error.facts['engine']} engine"
            raise BlackBoxUnfit(self.where, reason) from error
        if isinstance(found, LazyLog):
            reason = f"its appends are lazy: `anabranch log set-appends {self._name} direct`"
            raise BlackBoxUnfit(self.where, reason)
        return found
