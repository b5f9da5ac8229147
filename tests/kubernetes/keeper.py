"""One control plane for all of a run's workers: kept by a process of its own while anybody uses it.

Locks count the users, so whatever ends them counts. Each holds `users` shared; the keeper waits
for it alone, and then ends what it started. `keeper` is the keeper's own: who finds it free knows
that there is none.
"""

import fcntl
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from tests.kubernetes.api_server import ApiServer
from tests.kubernetes.control_plane import ControlPlane

from anabranch.apps.processes.binaries import alone
from anabranch.core.errors import Unavailable

ROOT = Path(__file__).resolve().parents[2]
START_S = 600.0

_LOOK_S = 0.05
_CONTROLLERS = "--controllers"


@contextmanager
def shared(folder: Path, *, controllers: bool = False) -> Generator[ApiServer]:
    """The one of this folder, begun if nobody keeps it."""
    folder.mkdir(parents=True, exist_ok=True)
    told = [_CONTROLLERS] if controllers else []
    with (folder / "users").open("w") as users:
        with alone(folder / "beginning"):
            # Waits here while a keeper ends.
            fcntl.flock(users, fcntl.LOCK_SH)
            if not kept(folder):
                begin(folder, "tests.kubernetes.keeper", str(folder), *told)
        yield ApiServer(folder / "plane")


def keep(folder: Path, *, controllers: bool) -> None:
    with keeping(folder), (folder / "users").open("w") as users:
        plane = ControlPlane(folder / "plane", controllers=controllers)
        try:
            plane.start()
            (folder / "ready").touch()
            fcntl.flock(users, fcntl.LOCK_EX)
        finally:
            plane.kill()


@contextmanager
def keeping(folder: Path) -> Generator[None]:
    """Let everybody see that this process keeps what is there."""
    with alone(folder / "keeper"):
        yield


def kept(folder: Path) -> bool:
    """Somebody keeps what is there."""
    with (folder / "keeper").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def begin(folder: Path, *module: str) -> None:
    """Run a module of ours that says by a file `ready` in the folder that it serves."""
    ready = folder / "ready"
    ready.unlink(missing_ok=True)
    log = folder / "keeper.log"
    pid = os.posix_spawn(
        sys.executable,
        [sys.executable, "-m", *module],
        {**os.environ, "PYTHONPATH": str(ROOT)},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        # Ctrl-C in a terminal is for us: it ends when nobody needs it.
        setsid=True,
    )
    pause = Event()
    for _ in range(int(START_S / _LOOK_S)):
        if ready.exists():
            return
        if os.waitpid(pid, os.WNOHANG) != (0, 0):
            said = log.read_text(encoding="utf-8", errors="replace").splitlines()
            raise Unavailable("a control plane", said[-1] if said else "its keeper ended")
        pause.wait(_LOOK_S)
    raise Unavailable("a control plane", f"it didn't serve within {START_S:.0f} s")


if __name__ == "__main__":
    keep(Path(sys.argv[1]), controllers=_CONTROLLERS in sys.argv)
