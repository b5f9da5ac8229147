"""Services that are killed while they are used, and serve again at the same address."""

import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGKILL
from threading import Event
from typing import Protocol

from tests.integration.server_process import Process

from anabranch.apps.processes.cluster import LocalCluster
from anabranch.apps.processes.layout import Shape, settle


class Service(Protocol):
    url: str

    def kill(self, chance: random.Random) -> None: ...


class OneProcess:
    """`anabranch up`, at one port over its lives."""

    def __init__(self, folder: Path) -> None:
        self._data = folder / "data"
        self._data.mkdir()
        self._process = Process(self._data)
        self._port = self._process.port
        self.url = f"anabranch://127.0.0.1:{self._port}"

    def kill(self, chance: random.Random) -> None:
        self._process.end(SIGKILL)
        Event().wait(chance.choice((0.0, 0.0, 0.3)))
        self._process = Process(self._data, "--port", str(self._port))

    def close(self) -> None:
        self._process.end(SIGKILL)


@contextmanager
def one_process() -> Iterator[OneProcess]:
    with tempfile.TemporaryDirectory() as folder:
        service = OneProcess(Path(folder))
        try:
            yield service
        finally:
            service.close()


class Brokers:
    """A cluster of processes with two brokers, of which one is killed."""

    def __init__(self, folder: Path) -> None:
        layout = settle(folder, Shape(etcd=1, metadata=1, brokers=2))
        self.url = layout.url
        etcd = {"unsafe_no_fsync": "true"}
        self._cluster = LocalCluster(folder, layout, etcd, with_gateway=False)
        self._cluster.start(lambda _: None)

    def kill(self, chance: random.Random) -> None:
        broker = chance.choice(self._cluster.brokers)
        broker.kill()
        Event().wait(chance.choice((0.0, 0.3, 5.0)))
        broker.start()

    def close(self) -> None:
        self._cluster.kill()


@contextmanager
def brokers() -> Iterator[Brokers]:
    with tempfile.TemporaryDirectory() as folder:
        service = Brokers(Path(folder) / "cluster")
        try:
            yield service
        finally:
            service.close()
