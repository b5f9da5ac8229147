"""What goes on while faults happen: client processes that do everything, and the verdict."""

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Self

import msgspec
from tests.integration.faults.web import WebClient
from tests.integration.faults.world import World
from tests.integration.kill.account import Account
from tests.integration.kill.campaign import Client
from tests.integration.kill.server import Pipes
from tests.integration.kill.verdict import Epilogue

from anabranch import aio
from anabranch.core.history.calls import Append, History

PATIENCE_S = 120.0
"""Whoever waits longer than this waits for nothing."""
WEB = 90
"""A number that no client process has."""


class Load:
    """Two processes of clients, one more at the gateway if there is one; `rng` is the seed's."""

    def __init__(self, world: World, seed: int, folder: Path, *, clients: int = 2) -> None:
        self.rng = Random(seed)
        self.history = History()
        self.played: list[str] = []
        """Strikes, and how long each took until all went on."""
        self._world = world
        self._seed = seed
        self._pipes = Pipes()
        self._begin = [
            partial(Client, world.url, number, seed, folder, self._pipes)
            for number in range(1, clients + 1)
        ]
        self._clients: list[Client] = []
        self._web = [WebClient(each.port, WEB) for each in world.gateways]

    def __enter__(self) -> Self:
        self._clients += [begin() for begin in self._begin]
        for web in self._web:
            web.start()
        self.go_on(20)
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients:
            client.close()
        for web in self._web:
            web.stop()
            web.join(PATIENCE_S)
        self._pipes.close()

    @property
    def acknowledged(self) -> int:
        """Appends, so far."""
        return sum(each.acknowledged for each in (*self._clients, *self._web))

    def play(self, strikes: Mapping[str, Callable[[], None]]) -> None:
        """Each once, in any order."""
        for name in self.rng.sample(sorted(strikes), len(strikes)):
            began = time.monotonic()
            self.played.append(name)
            strikes[name]()
            self.played[-1] += f" ({time.monotonic() - began:.1f} s)"

    def go_on(self, count: int = 0) -> None:
        """Return when so many more appends were acknowledged; by default few or many, by chance."""
        self.last(0.001)  # what was said up to now is of before
        end = self.acknowledged + (count or self.rng.choice((1, 5, 20, 60)))
        self.until(lambda: self.acknowledged >= end, f"{end} acknowledgements in all")

    def web_goes_on(self) -> None:
        """Return when the gateway's client had an acknowledgement."""
        (web,) = self._web
        end = web.acknowledged + 1
        self.until(lambda: web.acknowledged >= end, "an acknowledgement by HTTP")

    def last(self, seconds: float) -> None:
        """Let a fault last so long; clients go on as they can."""
        self._pipes.until(self._one_failed, seconds)

    def until(self, done: Callable[[], bool], what: str) -> None:
        came = self._pipes.until(lambda: done() or self._one_failed(), PATIENCE_S, look_s=0.05)
        assert came, f"waited in vain for {what}: {self._where}"
        assert done(), f"a client failed while we waited for {what}: {self._where}"

    def finish(self, anew: Callable[[], None]) -> list[str]:
        """End all calls; what is wrong with what is there, and with what was seen."""
        for web in self._web:
            web.stop()
            web.join(PATIENCE_S)
        for client in self._clients:
            client.tell(b"stop")
        self.until(lambda: all(client.quiet for client in self._clients), "calls to end")
        anew()
        faults = asyncio.run(self._judge())
        for pod in self._world.pods:
            if pod.running and "Traceback" in pod.said:
                faults.append(f"{pod.name} said: {pod.said[-2_000:]}")
        return faults

    def check(self, appends_min: int, anew: Callable[[], None] | None = None) -> None:
        """Finish, and fail if anything is wrong or too little was done to prove anything.

        What is judged isn't what processes have in memory, but what they find when they begin
        `anew`: by default, after all of them were killed.
        """
        faults = self.finish(anew or self._world.restart)
        assert not faults, f"{len(faults)} faults: {faults[:10]}: {self._where}"
        done = sum(isinstance(call, Append) and call.ok for call in self.history.calls)
        assert done >= appends_min, f"{done} appends prove nothing: {self._where}"

    @property
    def _where(self) -> str:
        return f"seed {self._seed}, after {', '.join(self.played) or 'no strike'}"

    async def _judge(self) -> list[str]:
        async with aio.connect(self._world.url, timeout=PATIENCE_S) as service:
            epilogue = Epilogue(service, self._seed)
            ends = await epilogue.settle()
            for client in self._clients:
                client.tell(msgspec.json.encode(ends))
            accounts = await asyncio.to_thread(self._accounts)
            faults = await epilogue.judge(accounts)
            self.history = epilogue.history
            return faults

    def _accounts(self) -> list[Account]:
        return [*(each.account() for each in self._clients), *(web.account for web in self._web)]

    def _one_failed(self) -> bool:
        return any(client.over for client in self._clients) or any(
            web.account.faults for web in self._web
        )
