"""Servers of others that tests, demos and benchmarks start: built once from pinned Go modules.

`python -m anabranch.apps.processes.binaries etcd versitygw` builds them ahead and prints where.
"""

import fcntl
import hashlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import IO

from anabranch.core.errors import Unavailable

MODULES = Path(__file__).parent / "modules"
ATTEMPTS = 3
BUILD_S = 900.0
"""One attempt: a way to the modules that swallows everything would hold us for ever."""
PROGRESS_S = 15.0
"""How often a build that goes on says how far it is."""
_PAUSE_S = 5.0
"""Between attempts: what fails is mostly the way to the modules."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Server:
    """A program of a Go module; its version and checksums are in `modules/<name>`."""

    name: str
    module: str
    program: str = ""
    """Where in the module it is; `./` leads to a main package of ours beside `go.mod`."""
    folder: Path | None = None
    """Where its `go.mod` is, if somewhere else."""
    variables: tuple[tuple[str, str], ...] = ()
    """What its own build tells the linker; `{version}` stands for its version."""
    build_s: float = BUILD_S

    @property
    def sources(self) -> Path:
        return self.folder or MODULES / self.name

    @property
    def package(self) -> str:
        return self.program if self._ours else self.module + self.program

    @property
    def override(self) -> str:
        """The variable that names a binary to use instead."""
        return f"ANABRANCH_{self.name.upper()}_BIN"

    @property
    def version(self) -> str:
        return self._pinned(rf"\b{re.escape(self.module)} (v\S+)")

    @property
    def go_version(self) -> str:
        """The oldest Go that builds it."""
        return self._pinned(r"(?m)^go (\S+)$")

    @property
    def place(self) -> Path:
        """Where it is kept; another version, or the same from other sources, has another place."""
        checksum = hashlib.sha256((self.sources / "go.sum").read_bytes())
        if self._ours:
            checksum.update((self.sources / self.program / "main.go").read_bytes())
        key = f"{self.name}-{self.version}-{checksum.hexdigest()[:12]}"
        return cache() / key / self.name

    @property
    def linked(self) -> str:
        """Without tables for debuggers, with the variables of its own build."""
        told = (f"-X {key}={value}" for key, value in self.variables)
        return " ".join(("-s -w", *told)).format(version=self.version)

    @property
    def _ours(self) -> bool:
        return self.program.startswith("./")

    def _pinned(self, pattern: str) -> str:
        found = re.search(pattern, (self.sources / "go.mod").read_text(encoding="utf-8"))
        assert found, (self.name, pattern)
        return found[1]


ETCD = Server("etcd", "go.etcd.io/etcd/server/v3")
VERSITYGW = Server("versitygw", "github.com/versity/versitygw", "/cmd/versitygw")
TOXIPROXY = Server("toxiproxy", "github.com/Shopify/toxiproxy/v2", "/cmd/server")
SERVERS = {server.name: server for server in (ETCD, VERSITYGW, TOXIPROXY)}


def cache() -> Path:
    """Where what takes long to make is kept."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "anabranch"


def is_ready(server: Server) -> bool:
    """Whether `find` answers at once."""
    return bool(os.environ.get(server.override)) or server.place.exists()


def obstacle(server: Server) -> str | None:
    """Why it can be neither found nor built here."""
    if is_ready(server) or shutil.which("go"):
        return None
    return (
        f"{server.name} is built by Go, which isn't installed: install Go {server.go_version} or "
        f"newer, or let {server.override} name a binary"
    )


def find(server: Server, say: Say | None = None) -> str:
    """The path of the binary, built if it isn't there; one builds, whoever else asks waits."""
    named = os.environ.get(server.override)
    if named:
        if shutil.which(named) is None:
            raise Unavailable(server.name, f"{server.override} = {named} can't be executed")
        return named
    place = server.place
    if place.exists():
        return str(place)
    stands = obstacle(server)
    if stands is not None:
        raise Unavailable(f"the server {server.name}", stands)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"there is no place for it ({error}): set XDG_CACHE_HOME"
        raise Unavailable(f"the server {server.name}", reason) from None
    with alone(place.with_suffix(".lock")):
        if not place.exists():
            _build(server, place, say or _say)
    return str(place)


@contextmanager
def alone(path: Path) -> Generator[None]:
    """The lock goes with the process that holds it, whatever ends it."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(server: Server, place: Path, say: Say) -> None:
    said = ""
    began = time.monotonic()
    say(f"building {server.name} {server.version}: once, it takes minutes")
    with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
        built = Path(scratch) / server.name
        for attempt in range(ATTEMPTS):
            if attempt:
                Event().wait(_PAUSE_S)
            fault = _compile(server, built, say)
            if fault is None:
                built.replace(place)
                say(f"built {server.name} in {time.monotonic() - began:.0f} s")
                return
            said = fault
    raise Unavailable(f"the server {server.name}", f"`go build` failed {ATTEMPTS} times: {said}")


def _compile(server: Server, to: Path, say: Say) -> str | None:
    """Run `go build`; return the end of its output if it failed."""
    flags = ["-mod=readonly", "-trimpath", "-v", f"-ldflags={server.linked}"]
    with tempfile.TemporaryFile() as output:
        with subprocess.Popen(
            ["go", "build", *flags, "-o", str(to), server.package],
            cwd=server.sources,
            # Neither somebody's workspace nor a C compiler, which may be missing, has a say.
            env={**os.environ, "GOWORK": "off", "CGO_ENABLED": "0"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        ) as build:
            code = _await(build, server, say, lambda: len(_lines(output)))
        if code is None:
            return f"it didn't end within {server.build_s:.0f} s"
        return None if code == 0 else " / ".join(_lines(output)[-3:])


def _await(
    build: subprocess.Popen[bytes], server: Server, say: Say, packages: Callable[[], int]
) -> int | None:
    """The exit code of a build whose progress is reported; None if it took too long."""
    for elapsed in itertools.count(1):
        try:
            return build.wait(PROGRESS_S)
        except subprocess.TimeoutExpired:
            seconds = elapsed * PROGRESS_S
            say(f"building {server.name}: {packages()} packages after {seconds:.0f} s")
            if seconds >= server.build_s:
                build.kill()
                return None
    raise AssertionError("the count above doesn't end")


def _lines(output: IO[bytes]) -> list[str]:
    """What a child wrote into the file so far; its own place in the file stays."""
    content = os.pread(output.fileno(), 1 << 24, 0)
    return content.decode(errors="replace").strip().splitlines()


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def main(names: list[str], servers: Mapping[str, Server] = SERVERS) -> int:
    unknown = [name for name in names if name not in servers]
    if unknown:
        _say(f"there is no server {unknown[0]}: choose from {', '.join(servers)}")
        return 2
    for name in names or servers:
        try:
            sys.stdout.write(f"{find(servers[name])}\n")
        except Unavailable as refused:
            _say(refused.message)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
