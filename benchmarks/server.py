"""`anabranch up` as a process of its own, on a real directory, and what it takes of the CPU."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

import anabranch
from benchmarks.report import SCRATCH

PROFILE = "BENCH_PROFILE"
"""Set it to a file's name, and the server writes its profile there when it ends."""

_TICKS = os.sysconf("SC_CLK_TCK")
_ROOT = Path(__file__).parents[1]


class _Endpoint(msgspec.Struct):
    frames: str
    http: str | None


@dataclass(frozen=True, slots=True)
class Server:
    """A running server and where it is found."""

    pid: int
    frames: str
    http: str | None

    @property
    def url(self) -> str:
        return f"anabranch://{self.frames}"

    @property
    def port(self) -> int:
        return int(self.frames.rpartition(":")[2])

    @property
    def http_port(self) -> int:
        assert self.http is not None
        return int(self.http.rpartition(":")[2])

    def cpu_s(self) -> float:
        return cpu_s(self.pid)

    def connect(self) -> "anabranch.Service":
        return anabranch.connect(self.url)


def cpu_s(pid: int) -> float:
    """What a process has taken so far, with all its threads, in the kernel and out of it."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2]
    user, system = fields.split()[11:13]
    return (int(user) + int(system)) / _TICKS


@contextmanager
def running(
    *,
    http: bool = False,
    memory: bool = False,
    data: Path | None = None,
    limits: Mapping[str, int] | None = None,
    put_ms: str = "",
) -> Generator[Server]:
    """One server, gone afterwards, and its directory too unless it is given one. `put_ms`: the
    median and the 99th percentile of a PUT, such as `100/195`.
    """
    SCRATCH.mkdir(exist_ok=True)
    _spread(SCRATCH)
    kept, data = data, data or Path(tempfile.mkdtemp(prefix="data-", dir=SCRATCH))
    profile = os.environ.get(PROFILE)
    words = ["-m", "cProfile", "-o", profile] if profile else []
    program = "benchmarks.slow_up" if put_ms else "anabranch.cli.main"
    words += ["-m", program, "up", "--port=0"]
    words += ["--memory"] if memory else [f"--data={data}"]
    words += ["--http-port=0"] if http else ["--no-http"]
    words += ["--log-format=json"]
    if limits is not None:
        settings = data.with_suffix(".toml")
        lines = ["[limits]", *(f"{name} = {value}" for name, value in limits.items())]
        settings.write_text("\n".join(lines), encoding="utf-8")
        words += [f"--config={settings}"]
    environment = {**os.environ, "BENCH_PUT_MS": put_ms}
    process = subprocess.Popen(
        [sys.executable, *words], stderr=subprocess.PIPE, cwd=_ROOT, env=environment
    )
    try:
        endpoint = _ready(process)
        yield Server(process.pid, endpoint.frames, endpoint.http)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)
        data.with_suffix(".toml").unlink(missing_ok=True)
        if kept is None:
            shutil.rmtree(data)


def _spread(directory: Path) -> None:
    """Ask ext4, where that is what is there, to put what is made in here far apart.

    Without a journal it passes over every file number that was deleted in the last minutes, one by
    one: the files of one run, removed, would make the next one three times as slow.
    """
    with suppress(OSError):
        subprocess.run(["chattr", "+T", str(directory)], check=False, stderr=subprocess.DEVNULL)


def _ready(process: "subprocess.Popen[bytes]") -> _Endpoint:
    """Read its log until it says where it serves; read on, so that it never waits for us."""
    assert process.stderr is not None
    seen: list[bytes] = []
    for line in process.stderr:
        seen.append(line)
        if b'"serving"' in line:
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return msgspec.json.decode(line, type=_Endpoint)
    raise RuntimeError(f"the server ended at once:\n{b''.join(seen).decode()}")
