"""A data directory with any byte changed is never called sound where it isn't, and never ends fsck
with a traceback.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch import aio
from anabranch.apps.check.fsck import Report
from anabranch.apps.check.sources import Directory
from anabranch.apps.settings import Settings
from anabranch.apps.up import Endpoint, serve
from anabranch.core.errors import AnabranchError
from anabranch.core.limits import Limits
from anabranch.core.records.record import Record


async def _live(data: Path) -> None:
    """A log with a fork, a promotion and a trim behind it."""
    stop = asyncio.Event()
    ready: asyncio.Future[Endpoint] = asyncio.get_running_loop().create_future()
    chosen = Settings(data=str(data), port=0, http_port=-1)
    serving = asyncio.create_task(serve(chosen, ready.set_result, stop=stop))
    async with aio.connect(f"anabranch://{(await ready).frames}") as service:
        log = await service.create("orders")
        for first in range(0, 30, 10):
            await log.append_many([Record(b"%d" % each) for each in range(first, first + 10)])
        plan = await log.cfork("plan", promotable=True)
        await plan.append(b"planned")
        await plan.promote()
        await log.sfork("past", past=9)
        await log.trim(5)
    stop.set()
    await serving


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("fsck") / "data"
    asyncio.run(_live(data))
    return data


def examined(data: Path) -> Report:
    with Directory(str(data), Limits(), alone=False) as found:
        return found.report(lambda done, total: None)


def stored(data: Path) -> Iterator[Path]:
    """Files that hold what was stored."""
    for folder in ("objects", "journal"):
        yield from sorted(each for each in (data / folder).rglob("[!.]*") if each.is_file())


def test_what_was_lived_in_is_sound(sound: Path) -> None:
    report = examined(sound)
    assert report.sound
    assert (report.logs, report.forks) == (1, 1)
    assert report.faults == []
    assert report.records >= 31


@settings(max_examples=40)
@given(st.data())
def test_a_changed_byte_is_seen_or_harmless(sound: Path, data: st.DataObject) -> None:
    """Harmless is what nothing refers to: then everything that is read is still what it was."""
    before = examined(sound)
    with tempfile.TemporaryDirectory() as name:
        copy = Path(shutil.copytree(sound, Path(name) / "data"))
        file = data.draw(st.sampled_from(list(stored(copy))))
        content = bytearray(file.read_bytes())
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] ^= data.draw(st.integers(1, 255))
        file.write_bytes(content)
        try:
            report = examined(copy)
        except AnabranchError:
            return
        if report.sound:
            assert (report.logs, report.forks, report.records) == (
                before.logs,
                before.forks,
                before.records,
            )
        else:
            assert report.faults


@settings(max_examples=20)
@given(st.data())
def test_a_file_that_is_cut_or_gone_is_seen(sound: Path, data: st.DataObject) -> None:
    before = examined(sound)
    with tempfile.TemporaryDirectory() as name:
        copy = Path(shutil.copytree(sound, Path(name) / "data"))
        file = data.draw(st.sampled_from([each for each in stored(copy) if "objects" in str(each)]))
        content = file.read_bytes()
        left = data.draw(st.integers(-1, len(content) - 1))
        file.unlink() if left < 0 else file.write_bytes(content[:left])
        try:
            report = examined(copy)
        except AnabranchError:
            return
        # What a promotion or a trim has left over isn't missed.
        assert not report.sound or before.garbage.objects


def test_fsck_changes_nothing(sound: Path) -> None:
    def everything() -> dict[str, bytes]:
        return {str(each): each.read_bytes() for each in stored(sound)}

    before = everything()
    assert examined(sound) == examined(sound)
    assert everything() == before
