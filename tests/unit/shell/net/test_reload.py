"""Certificates are renewed under a process that goes on: nobody is cut off or let in by mistake."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvloop
from tests.certificates import Issuer

from anabranch.core.errors import BadRequest
from anabranch.shell.net.reload import Renewed
from anabranch.shell.net.tls import TlsSettings, dialing, listening

PATIENCE_S = 60.0
LOOPS: list[Callable[[], asyncio.AbstractEventLoop]] = [
    asyncio.new_event_loop,
    uvloop.new_event_loop,
]


def run(scene: Coroutine[Any, Any, None], loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(asyncio.wait_for(scene, PATIENCE_S))


class Place:
    """Where a process finds its files, as a mounted secret: they are replaced, not written."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.settings = TlsSettings(
            cert=str(folder / "cert"), key=str(folder / "key"), ca=str(folder / "ca")
        )

    def put(self, leaf: TlsSettings, *trusted: Issuer) -> "Place":
        self.replace(self.settings.key, Path(leaf.key).read_text())
        self.replace(self.settings.cert, Path(leaf.cert).read_text())
        self.replace(self.settings.ca, "".join(each.certificate for each in trusted))
        return self

    def replace(self, file: str, content: str) -> None:
        part = Path(f"{file}.part")
        part.write_text(content)
        part.replace(file)


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while line := await reader.readline():
            writer.write(line)
            await writer.drain()
    except (ConnectionError, ssl.SSLError):
        return
    finally:
        writer.close()


class Line:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def works(self) -> bool:
        """Who is shown a certificate of a stranger says so after the handshake only."""
        try:
            self._writer.write(b"hello\n")
            return await self._reader.readline() == b"hello\n"
        except (ConnectionError, ssl.SSLError):
            return False

    def issuer(self) -> str:
        shown = self._writer.get_extra_info("peercert")
        return dict(pair for names in shown["issuer"] for pair in names)["commonName"]


@asynccontextmanager
async def served(settings: TlsSettings) -> AsyncGenerator[Callable[[ssl.SSLContext], Any]]:
    server = await asyncio.start_server(echo, "127.0.0.1", 0, ssl=listening(settings))
    port = server.sockets[0].getsockname()[1]
    open_lines: list[asyncio.StreamWriter] = []

    async def dial(context: ssl.SSLContext) -> Line:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        open_lines.append(writer)
        return Line(reader, writer)

    try:
        yield dial
    finally:
        for writer in open_lines:
            writer.transport.abort()
        server.close()


@pytest.mark.parametrize("loop", LOOPS, ids=("asyncio", "uvloop"))
def test_authorities_overlap_while_one_replaces_the_other(
    loop: Callable[[], asyncio.AbstractEventLoop], tmp_path: Path
) -> None:
    old, new = Issuer(tmp_path / "old", "old"), Issuer(tmp_path / "new", "new")
    ours = [Place(tmp_path / name).put(old.issue(name), old) for name in ("member", "broker")]
    straggler = Place(tmp_path / "straggler").put(old.issue("straggler"), old, new)
    member, broker = ours

    async def scene() -> None:
        async with served(member.settings) as dial:
            dialer = dialing(broker.settings)
            stale = dialing(straggler.settings)
            assert dialer is not None
            assert stale is not None
            first = await dial(dialer.current())
            assert first.issuer() == "old"
            # Trust comes first, then what is to be trusted, and the old one goes last.
            member.put(old.issue("member-2"), old, new)
            assert await (await dial(dialer.current())).works()
            broker.put(new.issue("broker-3"), old, new)
            assert await (await dial(dialer.current())).works()
            member.put(new.issue("member-4"), old, new)
            line = await dial(dialer.current())
            assert await line.works()
            assert line.issuer() == "new"
            assert await (await dial(stale.current())).works()
            for place, name in ((member, "member-5"), (broker, "broker-5")):
                place.put(new.issue(name), new)
            assert await (await dial(dialer.current())).works()
            assert not await (await dial(stale.current())).works()
            assert await first.works()

    run(scene(), loop)


def test_a_dialer_that_no_longer_trusts_an_authority_refuses_its_listeners(tmp_path: Path) -> None:
    old, new = Issuer(tmp_path / "old", "old"), Issuer(tmp_path / "new", "new")
    member = Place(tmp_path / "member").put(old.issue("member"), old)
    broker = Place(tmp_path / "broker").put(old.issue("broker"), old)

    async def scene() -> None:
        async with served(member.settings) as dial:
            dialer = dialing(broker.settings)
            assert dialer is not None
            assert await (await dial(dialer.current())).works()
            broker.put(old.issue("broker-2"), new)
            with pytest.raises(ssl.SSLCertVerificationError):
                await dial(dialer.current())

    run(scene(), asyncio.new_event_loop)


def test_files_that_dont_fit_yet_are_passed_over_until_they_do(tmp_path: Path) -> None:
    issuer = Issuer(tmp_path / "old", "old")
    new = Issuer(tmp_path / "new", "new")
    member = Place(tmp_path / "member").put(issuer.issue("member"), issuer, new)
    broker = Place(tmp_path / "broker").put(issuer.issue("broker"), issuer, new)
    renewed = new.issue("renewed")
    key, cert = (Path(file).read_text() for file in (renewed.key, renewed.cert))

    async def scene() -> None:
        async with served(member.settings) as dial:
            dialer = dialing(broker.settings)
            assert dialer is not None
            member.replace(member.settings.key, key)
            for _ in range(2):
                line = await dial(dialer.current())
                assert await line.works()
                assert line.issuer() == "old"
            member.replace(member.settings.cert, cert)
            assert (await dial(dialer.current())).issuer() == "new"

    run(scene(), asyncio.new_event_loop)


def test_a_file_that_is_gone_changes_nothing_and_is_read_when_it_is_back(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("1")

    def read() -> str:
        if not file.exists():
            raise BadRequest("the file", "it isn't there")
        return file.read_text()

    renewed = Renewed((str(file),), read, None)
    file.unlink()
    assert renewed.current() == "1"
    assert renewed.current() == "1"
    file.write_text("22")
    assert renewed.current() == "22"


def test_nothing_is_made_anew_while_the_files_stay(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("1")
    renewed = Renewed((str(file),), object, None)
    assert renewed.current() is renewed.current()
