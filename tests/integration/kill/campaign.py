"""A server that is killed again and again under load, and the clients that ride through it."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Self

import msgspec
from tests.integration.kill.account import Account, now
from tests.integration.kill.server import PATIENCE_S, Pipes, Server
from tests.integration.kill.verdict import Epilogue
from tests.integration.loop_disk import LoopDisk

from anabranch import aio
from anabranch.core.history.calls import Append, History, Stream
from anabranch.core.types import NEVER

ROOT = Path(__file__).resolve().parents[3]
CREW = 3
START_S = 0.6
"""About how long a start takes, which is when it is killed."""
PAUSE_S = 0.1
LOOK_S = 0.000_2
WATCH_S = 2.0
"""A moment that doesn't come within this isn't waited for any longer."""

KIB = 1 << 10
SETTINGS: dict[str, tuple[int, ...]] = {
    "blocked_wait_ms": (100,),
    "cache_bytes": (KIB, 256 << 20),
    "gc_interval_ms": (20,),
    "grace_ms": (1_000,),
    "group_commands_max": (3, 1_000),
    "linger_ms": (0, 2),
    "object_bytes_max": (8 * KIB, 4 << 20),
    "puts_in_flight_max": (1, 4),
    "read_bytes_max": (8 * KIB, 4 << 20),
    "snapshot_bytes": (2 * KIB, 32 * KIB),
    "subscription_bytes": (4 * KIB, 4 << 20),
    "watch_ms": (100, 1_000),
}


class Client:
    """A process that generates load: see crew.py."""

    def __init__(self, url: str, number: int, seed: int, folder: Path, pipes: Pipes) -> None:
        self.acknowledged = 0
        self.quiet = self.over = False
        self._file = folder / f"account-{number}"
        command = [sys.executable, "-m", "tests.integration.kill.crew", url, str(number)]
        self.process = subprocess.Popen(
            [*command, str(seed), str(self._file)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        pipes.add(self.process.stdout, self._heard)

    def tell(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def account(self) -> Account:
        assert self.process.wait(PATIENCE_S) == 0, "a client failed: its words are above"
        return msgspec.msgpack.decode(self._file.read_bytes(), type=Account)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()

    def _heard(self, content: bytes) -> None:
        self.acknowledged += content.count(b".")
        self.quiet |= b"q" in content
        self.over = not content


class Campaign:
    """One seed: it decides the settings, the strikes and their instants, and what clients ask."""

    def __init__(self, folder: Path, seed: int, data: Path | None = None) -> None:
        self.seed = seed
        self.rng = rng = Random(seed)
        self.pipes = Pipes()
        self.settings = {name: rng.choice(values) for name, values in SETTINGS.items()}
        self.data = data or folder / "data"
        self.server = Server(self.data, self.pipes, **self.settings)
        self.kills: list[int] = []
        """When, of each SIGKILL that a living server got."""
        self.history = History()
        self._folder = folder
        self._clients: list[Client] = []
        self._strikes: dict[str, Callable[[], None]] = {
            "under load": self._under_load,
            "when it starts": self._when_it_starts,
            "when it has recovered": self._when_it_has_recovered,
            "once it serves": self._once_it_serves,
            "in a snapshot": self._in_a_snapshot,
            "among garbage": self._among_garbage,
            "paused": self._paused,
            "stopping": self._stopping,
            "in order": self._in_order,
        }

    def __enter__(self) -> Self:
        self.server.start()
        for number in range(1, CREW + 1):
            client = Client(self.server.url, number, self.seed, self._folder, self.pipes)
            self._clients.append(client)
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients:
            client.close()
        self.server.close()
        self.pipes.close()

    def strike(self, name: str) -> None:
        """Have the server die in this way, and come back."""
        self._strikes[name]()
        self.server.start()

    def lose_power(self, disk: LoopDisk) -> None:
        """The disk under it goes away with all that wasn't synced, and comes back."""
        self._await_acknowledgements(self.rng.choice((1, 20, 60)))
        disk.cut_power()
        self._pass(PAUSE_S)
        self._kill()
        disk.restore()
        self.server.start()

    def fill(self, disk: LoopDisk, *, kill: bool) -> None:
        """The disk has no space for a while, in which it may die and start again."""
        self._await_acknowledgements(20)
        ballast = disk.fill()
        self._await(lambda: "storage-full" in self.server.said, "the disk to be full")
        if kill:
            self._kill()
            self.server.start()
        ballast.unlink()
        self._await_acknowledgements(1)

    def finish(self) -> list[str]:
        """Kill it a last time; what is wrong with what is there, and with what was seen."""
        self._under_load()
        faults = [f"fsck after a kill: {fault}" for fault in self.server.fsck()["faults"]]
        self.server.start()
        for client in self._clients:
            client.tell(b"stop")
        self._await(lambda: all(client.quiet for client in self._clients), "calls to end")
        faults += asyncio.run(self._judge())
        if self.server.end(signal.SIGTERM) != 0:
            faults.append(f"it didn't end in order: {self.server.said}")
        return faults + [f"fsck in the end: {fault}" for fault in self.server.fsck()["faults"]]

    def in_flight(self, at: int) -> int:
        """Calls that were unanswered at this instant, and answered later."""
        return sum(
            call.invoked < at < call.returned < NEVER
            for call in self.history.calls
            if not isinstance(call, Stream)
        )

    @property
    def acknowledged(self) -> int:
        """Appends, as the history has them."""
        return sum(isinstance(call, Append) and call.ok for call in self.history.calls)

    async def _judge(self) -> list[str]:
        async with aio.connect(self.server.url) as service:
            epilogue = Epilogue(service, self.seed)
            ends = await epilogue.settle()
            for client in self._clients:
                client.tell(msgspec.json.encode(ends))
            accounts = await asyncio.to_thread(lambda: [each.account() for each in self._clients])
            faults = await epilogue.judge(accounts)
            self.history = epilogue.history
            return faults

    def _await(self, done: Callable[[], bool], what: str) -> None:
        def ended() -> bool:
            return self.server.over or any(client.over for client in self._clients)

        assert self.pipes.until(lambda: done() or ended()), f"waited in vain for {what}"
        assert done(), f"somebody ended while we waited for {what}: {self.server.said}"

    def _await_acknowledgements(self, count: int) -> None:
        end = sum(client.acknowledged for client in self._clients) + count
        self._await(
            lambda: sum(client.acknowledged for client in self._clients) >= end,
            f"{count} acknowledgements",
        )

    def _pass(self, longest_s: float) -> None:
        """Let an instant be chosen by chance."""
        self.pipes.until(lambda: self.server.over, self.rng.uniform(0, longest_s))

    def _kill(self) -> None:
        self.kills.append(now())
        code = self.server.end()
        assert code == -signal.SIGKILL, f"it had ended by itself with {code}: {self.server.said}"

    def _under_load(self) -> None:
        self._await_acknowledgements(self.rng.choice((1, 5, 20, 60, 200)))
        self._kill()

    def _when_it_starts(self) -> None:
        """And again, when the next life starts."""
        self._under_load()
        for _ in range(2):
            self.server.launch()
            self._pass(START_S)
            self._kill()

    def _when_it_has_recovered(self) -> None:
        """Nothing is journaled yet but what recovery wrote; the broker's new life begins."""
        self._under_load()
        for _ in range(2):
            self.server.launch()
            self._await(lambda: " recovered " in self.server.said, "recovery")
            self._kill()

    def _once_it_serves(self) -> None:
        """When everybody comes back at once."""
        self._under_load()
        self.server.start()
        self._pass(0.03)
        self._kill()

    def _in_a_snapshot(self) -> None:
        """While the next one is being written, or just was."""
        journal = self.data / "journal"
        self._await_acknowledgements(5)
        self.pipes.until(
            lambda: any(name.endswith(".part") for name in os.listdir(journal)), WATCH_S, LOOK_S
        )
        self._kill()

    def _among_garbage(self) -> None:
        """Some objects are deleted, and nobody has said yet that they are."""
        self._await_acknowledgements(20)
        objects = self._objects()
        self.pipes.until(lambda: not objects <= self._objects(), WATCH_S, 20 * LOOK_S)
        self._kill()

    def _objects(self) -> set[str]:
        return {name for _, _, names in os.walk(self.data / "objects") for name in names}

    def _paused(self) -> None:
        """It stands still for a while, as do clients; it may not wake before it is killed."""
        self._await_acknowledgements(5)
        self.server.tell(signal.SIGSTOP)
        sleeper = self.rng.choice(self._clients).process
        sleeper.send_signal(signal.SIGSTOP)
        self._pass(PAUSE_S)
        if self.rng.random() < 0.5:
            self.server.tell(signal.SIGCONT)
            self._await_acknowledgements(1)
        self._kill()
        sleeper.send_signal(signal.SIGCONT)

    def _stopping(self) -> None:
        """Killed while it ends in order."""
        self._await_acknowledgements(5)
        self.server.tell(signal.SIGTERM)
        self._pass(0.02)
        self.kills.append(now())
        code = self.server.end()
        if code == 0:
            self.kills.pop()  # it was faster
        else:
            assert code == -signal.SIGKILL

    def _in_order(self) -> None:
        self._await_acknowledgements(5)
        assert self.server.end(signal.SIGTERM) == 0, self.server.said
        assert not (self.data / "endpoint").exists()
