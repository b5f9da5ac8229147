"""`anabranch demo`: a log service of its own, the story played on it, and nothing left behind."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import click
import msgspec

from anabranch.cli.demo.scenes import Narrator, play
from anabranch.cli.render.output import Output
from anabranch.cli.render.progress import console
from anabranch.cli.render.words import duration
from anabranch.cli.service.target import Target
from anabranch.core.errors import Unavailable
from anabranch.shell.runtime.clock import Clock

_START_S = 60.0
_STOP_S = 10.0
_LOOK_S = 0.02
_DATA, _LOG = "data", "server.log"


@click.command()
@click.option("--fast", is_flag=True, help="Don't pause for reading.")
def demo(fast: bool) -> None:
    """Play fork, promote and squash on a log of its own, narrated.

    Takes less than two minutes. Everything happens in a temporary directory and on a free port of
    loopback, and is gone afterwards.
    """
    narrator = Narrator(console(sys.stdout), pauses=sys.stdout.isatty() and not fast)
    asyncio.run(_interruptible(_demo(narrator)))


async def _demo(narrator: Narrator) -> None:
    clock = Clock()
    began = clock.now()
    with tempfile.TemporaryDirectory(prefix="anabranch-demo-") as directory:
        narrator.title("A log service, in a temporary directory")
        narrator.command(f"anabranch up --data {directory} --port 0 --no-http")
        async with _server(directory) as address:
            taken = duration((clock.now() - began) / 1e9)
            narrator.tell(f"It serves {address}, {taken} after it was asked for.")
            target = Target.at(f"anabranch://{address}", by="demo", timeout_s=60.0)
            async with target.connected() as service:
                await play(service, narrator, Output())
    taken = duration((clock.now() - began) / 1e9)
    narrator.tell(f"The server is stopped and its directory removed. All this took {taken}.")


@asynccontextmanager
async def _server(directory: str) -> AsyncGenerator[str]:
    """`anabranch up` in a process of its own; stopped whatever happens here."""
    process = _launched(directory)
    try:
        clock = Clock()
        until = clock.now() + int(_START_S * 1e9)
        while (address := _address(directory)) is None:
            if process.poll() is not None or clock.now() > until:
                raise Unavailable("the demo's server", _said(directory))
            await asyncio.sleep(_LOOK_S)
        yield address
    finally:
        await asyncio.shield(asyncio.to_thread(_stop, process))


def _launched(directory: str) -> subprocess.Popen[bytes]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ANABRANCH_")}
    arguments = ["up", "--data", f"{directory}/{_DATA}", "--port", "0", "--no-http"]
    with open(f"{directory}/{_LOG}", "wb") as log:
        # A session of its own: Ctrl-C in the terminal is for us, and we stop it in our order.
        return subprocess.Popen(
            [sys.executable, "-m", "anabranch.cli.main", *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _address(directory: str) -> str | None:
    """Where it listens, once it does: the server writes it beside its data."""
    endpoint = Path(directory, _DATA, "endpoint")
    if not endpoint.exists():
        return None
    return str(msgspec.json.decode(endpoint.read_bytes())["frames"])


def _said(directory: str) -> str:
    said = Path(directory, _LOG).read_text(errors="replace").strip()
    return said or "it did not start in time"


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


async def _interruptible(work: Coroutine[Any, Any, None]) -> None:
    """Being told to end or losing the terminal ends it like Ctrl-C: cleaned up."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    ended: list[int] = []

    def told(number: int) -> None:
        ended.append(number)
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, told, number)
    try:
        await task
    except asyncio.CancelledError:
        if not ended:
            raise
        raise click.exceptions.Exit(128 + ended[0]) from None
