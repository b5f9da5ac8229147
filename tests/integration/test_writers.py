"""Programs that append parts of versions, and are killed and tried again (decision 76)."""

import asyncio
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.cli_server import Server

import anabranch
from anabranch import aio
from anabranch.client.bolt.writers import BATCH_BYTES, BATCH_RECORDS, cut
from anabranch.core.errors import (
    BadRequest,
    NotOffered,
    NoWriterMarks,
    PartDiffers,
    WriterConflict,
)

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
LARGE = [b"%06d" % number for number in range(3 * BATCH_RECORDS + 1)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server.started(tmp_path_factory.mktemp("writers")) as server:
        yield server


@pytest.fixture
def service(server: Server) -> Iterator[anabranch.Service]:
    with anabranch.connect(server.url) as service:
        yield service


def values(log: anabranch.Log) -> list[bytes | None]:
    return [record.value for record in log.read()]


def killed(wanted: int) -> Iterator[bytes]:
    yield from LARGE[:wanted]
    raise KeyboardInterrupt


def test_a_part_of_any_size_is_in_the_log_once_and_in_its_order_whoever_is_killed(
    service: anabranch.Service,
) -> None:
    log = service.create("killed")
    with pytest.raises(KeyboardInterrupt):
        log.writer("q").append(killed(2 * BATCH_RECORDS + 1), version=0, part=3)
    done = log.writer("q").append(LARGE, version=0, part=3)
    assert (done.batches, done.records) == (4, len(LARGE))
    assert done.repeated >= 1, "what the first attempt was answered is in the log"
    assert done.first == (0, None)
    again = log.writer("q").append(iter(LARGE), version=0, part=3)
    assert (again.batches, again.repeated, again.first) == (4, 4, (0, None))
    assert values(log) == LARGE
    with pytest.raises(PartDiffers):
        log.writer("q").append(LARGE[1:], version=0, part=3)
    assert log.writer("q").append([bytes(250_000)] * 4, version=0, part=4).batches == 2


def test_batches_are_cut_by_records_alone() -> None:
    sizes = [BATCH_BYTES - 1, 2, BATCH_BYTES, BATCH_BYTES + 1, 1]
    found = [*cut([bytes(size) for size in sizes])]
    assert [[len(each.value or b"") for each in batch] for batch in found] == [
        [size] for size in sizes
    ]


def test_a_micro_batch_after_the_other_and_one_again(service: anabranch.Service) -> None:
    """As a driver that lost its note of the last one, with tasks that run twice."""
    log = service.create("stream")
    writer = log.writer("query 7f")
    for version in (0, 1, 1):
        parts: dict[int, int] = {}
        for part in (0, 1, 1, 2):
            rows = [b"%d %d %d" % (version, part, row) for row in range(3 * (part < 2))]
            parts[part] = writer.append(rows, version=version, part=part).batches
        writer.complete(version, parts)
    assert len(values(log)) == len(set(values(log))) == 12
    assert writer.append([b"of long ago"], version=0).complete == 1
    state = writer.state()
    assert state is not None
    assert (state.complete, state.parts, state.open) == (1, [(0, 1), (1, 1)], [])
    with pytest.raises(WriterConflict, match="part 0 has 0 batches in the log, and 1 were named"):
        writer.complete(2, {0: 1})
    assert [each.writer for each in log.writers()] == ["query 7f"]
    writer.release()
    assert log.writers() == []
    assert writer.append([b"of long ago"], version=0).complete == -1


def test_marks_outlive_the_server(tmp_path: Path) -> None:
    for turn in range(3):
        with Server.started(tmp_path) as server, anabranch.connect(server.url) as service:
            log = service.log("kept", engine="bolt") if turn else service.create("kept")
            done = log.writer("q").append([b"a", b"b"], version=0)
            assert (done.repeated, done.first) == (int(turn > 0), (0, None))
            if turn == 1:
                log.writer("q").complete(0, {0: 1})
            server.process.kill()
            server.process.wait()


def test_a_version_in_a_fork_is_in_its_parent_once(service: anabranch.Service) -> None:
    log = service.create("gated")
    for _ in range(2):
        fork = log.cfork(promotable=True)
        writer = fork.writer("q")
        done = writer.append([b"a", b"b"], version=0)
        if done.complete < 0:
            writer.complete(0, {0: done.batches})
        fork.promote()
    assert values(log) == [b"a", b"b"]
    withheld = log.cfork(promotable=True)
    appended = log.writer("q").append([b"c"], version=1)
    assert appended.first is not None
    assert appended.first.receipt is not None
    withheld.promote()
    assert appended.first.receipt.position() == 2


def test_an_asyncio_program_appends_parts_side_by_side(server: Server) -> None:
    async def run() -> None:
        async with aio.connect(server.url) as service:
            log = await service.create("aio")
            writer = log.writer("q")
            parts = [[b"%d %d" % (part, row) for row in range(9_000)] for part in range(3)]
            tries = [
                writer.append(part, version=0, part=number, timeout=60)
                for number, part in (*enumerate(parts), *enumerate(parts))
            ]
            done = await asyncio.gather(*tries)
            await writer.complete(0, {number: done[number].batches for number in range(3)})
            found = [record.value or b"" async for record in log.read()]
            assert len(found) == 27_000
            for number, part in enumerate(parts):
                assert [each for each in found if each.startswith(b"%d " % number)] == part
            assert sum(each.repeated for each in done) == sum(each.batches for each in done[:3])

    asyncio.run(run())


def test_the_page_on_exactly_once_runs(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = _BLOCK.findall((root / "docs/howto/exactly-once.md").read_text())
    first, second = (block for language, block in found if language == "python")
    (shell,) = (block for language, block in found if language == "sh")
    with Server.started(tmp_path) as server:
        for program in (first, "import anabranch\n" + second):
            exec(program.replace("anabranch://127.0.0.1:7420", server.url), {})
        said = subprocess.run(
            ["sh", "-ec", shell],
            env=server.terminal(tmp_path),
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
    assert capsys.readouterr().out == "1 batch was there, at 0\n1\n"
    assert "writer query-7f3c is released" in said
    assert re.search(r"query-8a10 +1 +1 +0 +0", said)


def test_logs_without_marks_say_so(service: anabranch.Service) -> None:
    lazy = service.create("lazy", append="lazy")
    with pytest.raises(NoWriterMarks, match="lazy front"):
        lazy.writer("q").append([b"a"], version=0)
    assert lazy.cfork().writer("q").append([b"a"], version=0).batches == 1
    sharded: Any = service.create("sharded", engine="belfast")
    with pytest.raises(NotOffered):
        sharded.writer("q")


def test_what_no_mark_can_be_is_refused(service: anabranch.Service) -> None:
    log = service.create("bounds")
    for version, part in ((-1, 0), (1 << 53, 0), (0, -1), (0, 1 << 31)):
        with pytest.raises(BadRequest):
            log.writer("q").append([b"a"], version=version, part=part)
    with pytest.raises(BadRequest, match="writer_chars_max"):
        log.writer("q" * 201).append([b"a"], version=0)
