"""Servers of others as processes of ours: started, found ready, and ended by their number."""

import os
import secrets
import shutil
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from threading import Event
from typing import ClassVar

from anabranch.apps import listeners
from anabranch.apps.processes import child
from anabranch.apps.processes.binaries import ETCD, VERSITYGW, find
from anabranch.apps.processes.ports import HOST, free_ports
from anabranch.core.errors import Unavailable

START_S = 120.0
"""A machine that is busy with other things may take this long."""
STOP_S = 30.0
"""After this a process that was asked to end is killed."""
ATTEMPTS = 5
"""To find ports that nobody takes between our look and the server's."""

_LOOK_S = 0.02
_ANSWER_S = 5.0
_TAKEN = "address already in use"
_OWN = ("ETCD_", "VGW_", "ROOT_")
"""Variables that would configure these servers behind our back."""


class ServerProcess:
    """One process, from `start` to `stop` or `kill`, and again; its output is kept in a file."""

    tethered: ClassVar[bool] = False
    """Whether processes end when the thread that launches them ends: what a supervisor wants, which
    launches all of them from its main thread.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        folder: Path,
        ready: Callable[[], bool],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.output = folder / f"{name}.log"
        self._command = command
        self._folder = folder
        self._ready = ready
        self._environment = environment or {}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} was never started"
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def ending(self) -> str:
        """How it ended: `SIGKILL`, or `exit status 1`."""
        assert self._process is not None, f"{self.name} was never started"
        status = self._process.returncode
        return signal.Signals(-status).name if status < 0 else f"exit status {status}"

    @property
    def lost_its_port(self) -> bool:
        """It ended because somebody else listens there by now."""
        ended = self._process is not None and not self.running
        return ended and any(_TAKEN in line.lower() for line in self._said())

    def start(self) -> None:
        """Return when it serves."""
        self.launch()
        self.wait_ready()

    def launch(self) -> None:
        assert not self.running, f"{self.name} runs already"
        self._folder.mkdir(parents=True, exist_ok=True)
        if self.output.exists():
            # Of a life that ended by itself, this is all that is left to tell why.
            self.output.replace(self.output.with_suffix(".log.1"))
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(_OWN)}
        with self.output.open("wb") as output:
            self._process = subprocess.Popen(
                [*self._prefix(), *self._command],
                cwd=self._folder,
                env={**inherited, **self._environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Ctrl-C in a terminal is for us: we end what we started, in our order.
                start_new_session=True,
            )

    def answers(self, port: int, path: str, *, tls: bool = False, host: str = HOST) -> bool:
        """Whether this process, and no other that has taken its port, answers a GET with 200."""
        # Linux takes 10 ms to list all sockets, so that is asked last: who waits for the process
        # looks again and again.
        return (
            self.running
            and answers(port, path, tls=tls, host=host) == 200
            and listeners.listens(self.pid, port)
        )

    def wait_ready(self) -> None:
        pause = Event()
        for _ in range(int(START_S / _LOOK_S)):
            if not self.running:
                raise self._failed("it ended before it served")
            if self._ready():
                return
            pause.wait(_LOOK_S)
        raise self._failed(f"it didn't serve within {START_S:.0f} s")

    def ask_to_end(self) -> None:
        """Without waiting until it has."""
        if self._process is not None and self.running:
            self._process.terminate()
            self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Ask it to end; kill it if it doesn't."""
        if self._process is None or not self.running:
            return
        self.ask_to_end()
        self.wait_ended()

    def wait_ended(self) -> None:
        """After it was asked to; kill it if it doesn't."""
        if self._process is None:
            return
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def _prefix(self) -> list[str]:
        if not self.tethered:
            return []
        return [sys.executable, "-I", "-S", child.__file__, str(os.getpid())]

    def _failed(self, how: str) -> Unavailable:
        return Unavailable(f"the server {self.name}", f"{how}: {' / '.join(self._said()[-5:])}")

    def _said(self) -> list[str]:
        return self.output.read_text(encoding="utf-8", errors="replace").splitlines()


class EtcdServer(ServerProcess):
    """One member of a group."""

    def __init__(self, group: "EtcdGroup", number: int, ports: Sequence[int]) -> None:
        client, self.peer_port, self._health_port = ports
        self.address = f"{HOST}:{client}"
        name = f"etcd-{number}"
        peer = f"http://{HOST}:{self.peer_port}"
        folder = group.folder / name
        told = {
            "name": name,
            "data-dir": str(folder / "data"),
            "listen-client-urls": f"http://{self.address}",
            "advertise-client-urls": f"http://{self.address}",
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster-token": group.folder.name,
            # A listener of its own, so that readiness needs neither a certificate nor a user.
            "listen-metrics-urls": f"http://{HOST}:{self._health_port}",
            "log-level": "warn",
            **group.options,
        }
        self._told = told
        super().__init__(name, [], folder, self._healthy)

    def join(self, members: Sequence["EtcdServer"]) -> None:
        """Tell it who else there is, before its first start."""
        listed = ",".join(f"{each.name}=http://{HOST}:{each.peer_port}" for each in members)
        told = {**self._told, "initial-cluster": listed}
        self._command = [find(ETCD), *(f"--{key}={value}" for key, value in told.items())]

    def _healthy(self) -> bool:
        """It knows a leader and can be read. `/health` is no for an etcd that is full as well, and
        whoever is to make room in it must reach it.
        """
        return self.answers(self._health_port, "/readyz")


class EtcdGroup:
    """Members that started as one group; `options` are etcd's own flags, with `_` for `-`."""

    def __init__(
        self, folder: Path, members: int = 1, ports: Sequence[int] = (), **options: str
    ) -> None:
        assert ports or not folder.exists(), "a group that was there before has its ports"
        self.folder = folder
        self.options = {key.replace("_", "-"): value for key, value in options.items()}
        self.ports = ports
        """Three a member; to start a group of the same folder again, pass the same."""
        self.members: list[EtcdServer] = []
        self._size = members

    @property
    def addresses(self) -> list[str]:
        return [member.address for member in self.members]

    def start(self) -> None:
        """A new group, or every member of this one that doesn't run."""
        if self.ports:
            self._start()
            return
        for _ in range(ATTEMPTS):
            self.ports = free_ports(3 * self._size)
            try:
                self._start()
            except Unavailable:
                self.kill()
                if not any(member.lost_its_port for member in self.members):
                    raise
                shutil.rmtree(self.folder)
                self.members = []
            else:
                return
        raise Unavailable("a group of etcd", f"it lost its ports {ATTEMPTS} times")

    def stop(self) -> None:
        for member in self.members:
            member.stop()

    def kill(self) -> None:
        for member in self.members:
            member.kill()

    def _start(self) -> None:
        """All before any is waited for: one alone is no majority."""
        if not self.members:
            triples = [self.ports[3 * n : 3 * n + 3] for n in range(self._size)]
            self.members = [EtcdServer(self, n, three) for n, three in enumerate(triples)]
            for member in self.members:
                member.join(self.members)
        for member in self.members:
            if not member.running:
                member.launch()
        for member in self.members:
            member.wait_ready()


class S3Server(ServerProcess):
    """versitygw over a folder: objects are whole or absent, but nothing is synced to the disk."""

    def __init__(
        self,
        folder: Path,
        *,
        access_key: str = "anabranch",
        secret_key: str | None = None,
        region: str = "us-east-1",
        port: int = 0,
        certificate: tuple[Path, Path] | None = None,
    ) -> None:
        """With a certificate and its key, both files, it speaks TLS only."""
        self.access_key = access_key
        self.secret_key = secret_key = secret_key or secrets.token_hex(20)
        self.region = region
        self.buckets = folder / "buckets"
        self.port = port
        self._certificate = certificate
        environment = {"ROOT_ACCESS_KEY": access_key, "ROOT_SECRET_KEY": secret_key}
        super().__init__("versitygw", [], folder, self._serves, environment)

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def endpoint(self) -> str:
        return f"{'https' if self._certificate else 'http'}://{self.address}"

    def start(self) -> None:
        """On a port of its choice the first time, on the same one again."""
        self.buckets.mkdir(parents=True, exist_ok=True)
        if self.port:
            self._start()
            return
        for _ in range(ATTEMPTS):
            (self.port,) = free_ports(1)
            try:
                self._start()
            except Unavailable:
                if not self.lost_its_port:
                    raise
            else:
                return
        raise Unavailable("the server versitygw", f"it lost its port {ATTEMPTS} times")

    def make_bucket(self, name: str) -> None:
        (self.buckets / name).mkdir()

    def _start(self) -> None:
        told = ["--port", self.address, "--region", self.region, "--health", "/health"]
        if self._certificate is not None:
            told += ["--cert", str(self._certificate[0]), "--key", str(self._certificate[1])]
        binary = find(VERSITYGW)
        self._command = [binary, "--quiet", "--keep-alive", *told, "posix", str(self.buckets)]
        super().start()

    def _serves(self) -> bool:
        return self.answers(self.port, "/health", tls=self._certificate is not None)


def answers(port: int, path: str, *, tls: bool = False, host: str = HOST) -> int | None:
    """The status of a GET; None if nobody answers. Whose certificate it is isn't looked at."""
    return ask(port, path, tls=tls, host=host)[0]


def ask(port: int, path: str, *, tls: bool = False, host: str = HOST) -> tuple[int | None, bytes]:
    """The same, and what is answered."""
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = HTTPSConnection(host, port, timeout=_ANSWER_S, context=context)
    else:
        connection = HTTPConnection(host, port, timeout=_ANSWER_S)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, HTTPException):
        return None, b""
    finally:
        connection.close()
