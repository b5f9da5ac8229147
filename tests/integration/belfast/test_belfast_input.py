"""What can't be meant is refused at once and by name: by clients, commands and nodes."""

import asyncio
import io
import math
from collections.abc import Callable
from typing import Any, cast

import pytest
from tests.integration.belfast.deployment import PATIENCE_S

import anabranch
from anabranch.apps.processes.local_log import LocalLog
from anabranch.cli.failure import Exit, run
from anabranch.cli.main import PROGRAM, cli
from anabranch.client.belfast import aio
from anabranch.client.session.endpoint import address, belfast_endpoint
from anabranch.client.session.records import Deliver
from anabranch.core.belfast.protocol.codec import CODEC
from anabranch.core.belfast.protocol.messages import (
    BELFAST_VERSION,
    Hello,
    Join,
    Leave,
    Subscribe,
    ToClient,
    ToServer,
    Trim,
    Where,
)
from anabranch.core.errors import AnabranchError, BadRequest, Mistake
from anabranch.core.errors.refused import Refused
from anabranch.core.records.record import Record
from anabranch.core.wire.frames import FrameReader

HALF = "\ud800"
"""Half of a character, as arguments have that aren't UTF-8."""

ODD: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "unknown shard": ("no shard nope", lambda log: taken(log.subscribe(0, shards=["nope"]))),
    "one of two unknown": (
        "no shard nope",
        lambda log: taken(log.subscribe(0, shards=["shard-0", "nope"])),
    ),
    "a string of shards": ("a list", lambda log: log.subscribe(0, shards="shard-0")),
    "no shards": ("at least one", lambda log: log.subscribe(0, shards=[])),
    "half a shard": ("Unicode", lambda log: log.subscribe(0, shards=[HALF])),
    "a start past 2^63": ("isn't from 0", lambda log: log.subscribe(1 << 63)),
    "a start past 2^64": ("isn't from 0", lambda log: log.subscribe(1 << 64)),
    "a start before 0": ("isn't from 0", lambda log: log.subscribe(-1)),
    "a start of nan": ("whole number", lambda log: log.subscribe(math.nan)),
    "a start in words": ("whole number", lambda log: log.subscribe("0")),
    "a where in words": ("a Where", lambda log: log.subscribe(0, where="key")),
    "a prefix in words": (
        "must be bytes",
        lambda log: log.subscribe(where=Where(key_prefix=cast("bytes", "k"))),
    ),
    "half a header": ("Unicode", lambda log: log.subscribe(where=Where(header=HALF))),
    "a remainder that no key has": (
        "key_remainder",
        lambda log: log.subscribe(where=Where(key_modulus=2, key_remainder=2)),
    ),
    "fewer than no records": ("isn't from 0", lambda log: log.subscribe(0).take(records_max=-1)),
    "a wait of nan": ("isn't from 0", lambda log: log.subscribe(0).take(timeout=math.nan)),
    "append: unknown shard": ("no shard nope", lambda log: log.append(b"x", shard="nope")),
    "append: no name": ("0 bytes", lambda log: log.append(b"x", shard="")),
    "append: half a shard": ("Unicode", lambda log: log.append(b"x", shard=HALF)),
    "append: text": ("must be bytes", lambda log: log.append("x")),
    "append: half a header": ("Unicode", lambda log: log.append(b"x", headers={HALF: b""})),
    "append: headers in words": ("a dict", lambda log: log.append(b"x", headers="a=b")),
    "append: a time of nan": ("whole number", lambda log: log.append(b"x", timestamp=math.nan)),
    "append: a timeout of nan": ("isn't from 0", lambda log: log.append(b"x", timeout=math.nan)),
    "append: a timeout before 0": ("isn't from 0", lambda log: log.append(b"x", timeout=-1)),
    "append: for ever": ("isn't from 0", lambda log: log.append(b"x", timeout=math.inf)),
    "many: one string": ("a list", lambda log: log.append_many("abc")),
    "many: one value": ("a list", lambda log: log.append_many(b"abc")),
    "many: strings": ("must be bytes", lambda log: log.append_many(["abc"])),
    "many: a record of text": (
        "must be bytes",
        lambda log: log.append_many([Record("abc")]),  # pyright: ignore[reportArgumentType]
    ),
    "trim: before 0": ("isn't from 0", lambda log: log.trim(-1)),
    "trim: past 2^64": ("isn't from 0", lambda log: log.trim(1 << 64)),
    "trim: nan": ("whole number", lambda log: log.trim(math.nan)),
    "leave: half a shard": ("Unicode", lambda log: log.leave(HALF)),
    "leave: unknown shard": ("no shard nope", lambda log: log.leave("nope")),
    "join: a list": ("must be text", lambda log: log.join(["shard-0"])),
    "status: a timeout of nan": ("isn't from 0", lambda log: log.status(timeout=math.nan)),
}


def taken(events: Any) -> Any:
    return events.take(timeout=PATIENCE_S)


def test_a_client_says_at_once_what_it_cannot_do(shared: LocalLog) -> None:
    unhandled: list[dict[str, Any]] = []

    async def scenario() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, told: unhandled.append(told))
        async with aio.connect(shared.layout.url, timeout=PATIENCE_S) as log:
            for says, call in ODD.values():
                with pytest.raises(Mistake, match=says):
                    await call(log)
            assert await log.append(b"x", timeout=PATIENCE_S) >= 0, "it goes on"

    asyncio.run(scenario())
    assert not unhandled


def test_without_an_event_loop_it_says_the_same(shared: LocalLog) -> None:
    with anabranch.belfast.connect(shared.layout.url, timeout=PATIENCE_S) as log:
        for says, call in ODD.values():
            with pytest.raises(Mistake, match=says):
                call(log)
        assert log.append(b"x", timeout=PATIENCE_S) >= 0, "it goes on"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["tail", "--shard", "nope"], "there is no shard nope"),
        (["append", "x", "--shard", "nope"], "there is no shard nope"),
        (["append", "x", "--shard", "\udcff"], "isn't UTF-8"),
        (["tail", "--from", str(1 << 64)], "isn't from 0"),
        (["tail", "--from", "-1"], "--from"),
        (["trim", str(1 << 64)], "isn't from 0"),
        (["trim", "-1"], "-1"),
        (["leave", "nope"], "there is no shard nope"),
        (["status", "--timeout", "nan"], "is no duration"),
        (["status", "--url", "belfast://h..x:1/c"], "isn't the name of a host"),
    ],
)
def test_a_command_says_what_it_cannot_do(
    shared: LocalLog, words: list[str], says: str, capfd: pytest.CaptureFixture[str]
) -> None:
    code = run(cli, PROGRAM, ["belfast", *words, *at(shared, words)])
    assert code in {Exit.REFUSED, Exit.USAGE}
    assert says in capfd.readouterr().err


def at(shared: LocalLog, words: list[str]) -> list[str]:
    return [] if "--url" in words else [f"--url={shared.layout.url}"]


def test_a_command_appends_bytes_that_are_no_text(
    shared: LocalLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arguments that aren't UTF-8 are told with surrogates."""
    words = ["belfast", "append", *at(shared, [])]
    assert run(cli, PROGRAM, [*words, "\udcff\udcfe", "--key", "\udcfd"]) is Exit.OK
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff\n")))
    assert run(cli, PROGRAM, words) is Exit.OK
    with anabranch.belfast.connect(shared.layout.url, timeout=PATIENCE_S) as log:
        end = log.append(b"end", timeout=PATIENCE_S)
        with log.subscribe(0, speculative=False) as events:
            values: list[bytes | None] = []
            while events.final <= end:
                told = events.take(timeout=PATIENCE_S)
                values += [each.record.value for each in told if isinstance(each, Deliver)]
    assert values[-3:] == [b"\xff\xfe", b"\xff", b"end"]


@pytest.mark.parametrize(
    "message",
    [
        Subscribe("shard-0", -1),
        Subscribe("shard-0", (1 << 63) + 1),
        Subscribe("shard-0", 0, Where(key_modulus=-1)),
        Subscribe("shard-0", 0, Where(key_modulus=1 << 40)),
        Subscribe("x" * 10_000, 0),
        Trim(-1),
        Trim(1 << 63),
        Leave(""),
        Join("x" * 10_000),
    ],
    ids=repr,
)
def test_a_node_refuses_what_a_client_should_have(shared: LocalLog, message: ToServer) -> None:
    refused = asyncio.run(answers(shared, message))
    assert [type(each) for each in refused] == [BadRequest]
    assert len(refused[0].message) < 1_000


async def _reply(
    reader: asyncio.StreamReader, frames: FrameReader[ToClient]
) -> ToClient | AnabranchError:
    while not (found := frames.feed(await reader.read(65_536))):
        assert not reader.at_eof(), "the node closed the connection"
    return found[0][1]


async def answers(shared: LocalLog, message: ToServer) -> list[AnabranchError]:
    """What each node says, but for those that say who else should be asked."""
    where = belfast_endpoint(shared.layout.url)
    async with aio.connect(shared.layout.url, timeout=PATIENCE_S) as log:
        directory = await log.directory(timeout=PATIENCE_S)
    named = next(each for each in directory.shards if each.name == "shard-0")
    node = named.primary if isinstance(message, Subscribe) else directory.leader
    reader, writer = await asyncio.open_connection(*address(node))
    frames = CODEC.replies()
    writer.writelines(CODEC.encode_request(0, Hello(BELFAST_VERSION, where.cluster, "test")))
    async with asyncio.timeout(PATIENCE_S):
        await _reply(reader, frames)  # the welcome
        writer.writelines(CODEC.encode_request(1, message))
        answer = await _reply(reader, frames)
    writer.close()
    assert isinstance(answer, Refused), answer
    return [answer.error()]
