"""The driver on real sockets, in every engine's dialect."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.unit.client.session.stage import ENGINES, Engine

from anabranch.client.belfast.link import Link as BelfastLink
from anabranch.client.bolt.link import Link as BoltLink
from anabranch.client.session.endpoint import Endpoint, belfast_endpoint, endpoint
from anabranch.client.session.settings import Settings
from anabranch.core.belfast.protocol import messages as of_belfast
from anabranch.core.bolt.protocol import messages as of_bolt
from anabranch.core.bolt.protocol.commands import Done
from anabranch.core.errors import AnabranchError, Unavailable

PATIENCE_S = 20.0
SETTINGS = Settings(client="t", timeout_ms=5_000)


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(serve: Serve) -> AsyncGenerator[int]:
    """The port; every connection has ended when this has."""
    serving: list[asyncio.Task[Any] | None] = []

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.append(asyncio.current_task())
        try:
            await serve(reader, writer)
        except ConnectionError:
            pass  # the client has left
        finally:
            writer.close()

    server = await asyncio.start_server(served, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
    await asyncio.gather(*(each for each in serving if each is not None))


@dataclass
class Conversation:
    """What a server was told on one connection."""

    hello: Any = None
    asked: list[Any] = field(default_factory=list[Any])


class Server:
    """Welcomes and answers; the first `breaks` connections end right behind their welcome."""

    def __init__(self, engine: Engine, breaks: int = 0) -> None:
        self.conversations: list[Conversation] = []
        self._engine, self._breaks = engine, breaks

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        codec = self._engine.dialect.codec
        frames, told = codec.requests(1 << 20), Conversation()
        self.conversations.append(told)
        while content := await reader.read(1 << 16):
            for request, message in frames.feed(content):
                assert not isinstance(message, AnabranchError)
                if told.hello is None:
                    told.hello = message
                    writer.writelines(codec.encode_reply(0, self._engine.welcome))
                    if len(self.conversations) <= self._breaks:
                        return
                else:
                    told.asked.append(message)
                    writer.writelines(codec.encode_reply(request, self._engine.answer))


def at(name: str, port: int, query: str = "") -> Endpoint:
    """The server, as a program of this engine names it."""
    host = f"127.0.0.1:{port}"
    return endpoint(host + query) if name == "bolt" else belfast_endpoint(f"{host}/c{query}")


async def ask(where: Endpoint, *, timeout_s: float = 5.0) -> None:
    """One question, over a link of its own."""
    link = BelfastLink(where, SETTINGS) if where.cluster else BoltLink(where, SETTINGS)
    link.start()
    try:
        if isinstance(link, BelfastLink):
            await link.ask(of_belfast.Trim(0), of_belfast.Done, "it", timeout_s)
        else:
            await link.ask(of_bolt.Survey(), Done, "it", round(timeout_s * 1_000))
    finally:
        link.close()


def run(scene: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await scene()

    asyncio.run(limited())


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_a_token_file_is_read_for_each_connection(name: str, tmp_path: Path) -> None:
    file = tmp_path / "token"

    async def scene() -> None:
        server = Server(ENGINES[name])
        async with listening(server.serve) as port:
            for token in ("first", "second"):
                file.write_text(f"{token}\n")
                await ask(at(name, port, f"?token_file={file}"))
        assert [each.hello.token for each in server.conversations] == ["first", "second"]

    run(scene)


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_what_was_asked_on_a_connection_that_broke_is_asked_again(name: str) -> None:
    async def scene() -> None:
        server = Server(ENGINES[name], breaks=2)
        async with listening(server.serve) as port:
            await ask(at(name, port))
        assert len(server.conversations) >= 3

    run(scene)


@pytest.mark.parametrize("name", sorted(ENGINES))
@pytest.mark.parametrize(
    ("said", "advice"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP is spoken there"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "TLS is spoken there: write {}s://"),
        (b"", "without a word; if TLS is spoken there, write {}s://"),
    ],
    ids=["http", "tls", "nothing"],
)
def test_a_port_where_something_else_listens_is_named(name: str, said: bytes, advice: str) -> None:
    async def stranger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(said)

    async def scene() -> None:
        async with listening(stranger) as port:
            where = at(name, port)
            with pytest.raises(Unavailable) as caught:
                await ask(where, timeout_s=0.3)
        assert advice.format(where.plain_scheme) in caught.value.message

    run(scene)


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_a_token_file_that_can_t_be_read_is_told_when_the_time_is_over(
    name: str, tmp_path: Path
) -> None:
    async def scene() -> None:
        with pytest.raises(Unavailable, match="the token file"):
            await ask(at(name, 1, f"?token_file={tmp_path / 'missing'}"), timeout_s=0.2)

    run(scene)


def test_a_token_file_that_never_ends_is_not_read_for_ever() -> None:
    async def scene() -> None:
        with pytest.raises(Unavailable, match="the token file /dev/zero: it is larger than"):
            await ask(at("bolt", 1, "?token_file=/dev/zero"), timeout_s=1)

    run(scene)


def test_a_node_within_a_service_is_dialed_at_the_service_and_named_in_the_hello() -> None:
    engine = ENGINES["belfast"]

    async def scene() -> None:
        server = Server(engine)
        async with listening(server.serve) as port:
            where = at("bolt", port)
            link = BelfastLink(where, SETTINGS, "c", ["/7/sequencer-0"])
            link.start()
            await link.ask(of_belfast.Trim(0), of_belfast.Done, "it", None)
            link.close()
        (told,) = server.conversations
        assert (told.hello.node, told.hello.cluster) == ("/7/sequencer-0", "c")

    run(scene)
