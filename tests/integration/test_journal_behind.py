"""A data directory whose journal is older than its objects isn't served, nor thrown away."""

import asyncio
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.integration.cli_server import ANABRANCH, Server, bare

import anabranch
from anabranch.apps.settings import Settings
from anabranch.apps.up import serve
from anabranch.cli.failure import Exit, run
from anabranch.cli.main import PROGRAM, cli
from anabranch.core.errors import JournalBehind
from anabranch.core.records.objects import ObjectName
from anabranch.shell.journal.watermark import FILE, WatermarkFile

OLD, NEW = 5, 7


@dataclass(frozen=True, slots=True)
class Worn:
    """A directory with a copy of its journal from before its last records."""

    data: Path
    copy: Path

    @property
    def objects(self) -> list[Path]:
        return sorted(path for path in (self.data / "objects").rglob("[!.]*") if path.is_file())

    @property
    def journal(self) -> Path:
        return self.data / "journal"

    def age(self) -> None:
        shutil.rmtree(self.journal)
        shutil.copytree(self.copy, self.journal)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    above = tmp_path_factory.mktemp("behind")
    for life, records in enumerate((OLD, NEW)):
        with (
            Server.started(above) as server,
            anabranch.connect(server.url) as service,
        ):
            orders = service.ensure("orders")
            for turn in range(records):
                orders.append(b"%d" % (turn + life * OLD))
        if not life:
            shutil.copytree(above / "data" / "journal", above / "copy")
    return above


@pytest.fixture
def worn(made: Path, tmp_path: Path) -> Worn:
    above = Path(shutil.copytree(made, tmp_path / "all"))
    return Worn(above / "data", above / "copy")


@pytest.fixture
def nothing_is_served(worn: Worn) -> Iterator[None]:
    yield
    before = {path: path.stat().st_ino for path in worn.objects}
    with pytest.raises(JournalBehind):
        asyncio.run(serve(Settings(data=str(worn.data), port=0), stop=asyncio.Event()))
    assert {path: path.stat().st_ino for path in worn.objects} == before


def test_an_older_copy_of_the_journal_ends_the_process_with_a_code_of_its_own(worn: Worn) -> None:
    worn.age()
    command = [*ANABRANCH, "up", "--data", str(worn.data), "--port", "0", "--no-http"]
    refused = subprocess.run(
        command, env=bare(), capture_output=True, text=True, timeout=60, check=False
    )
    assert refused.returncode == Exit.BEHIND
    assert "entries that were acknowledged are missing" in refused.stderr
    assert "--accept-loss" in refused.stderr


@pytest.mark.usefixtures("nothing_is_served")
def test_a_copy_of_the_journal_that_is_one_entry_short_is_refused(worn: Worn) -> None:
    """No object proves it: the last one could be an orphan of a crash."""
    note = WatermarkFile(str(worn.data / "objects"))
    mark = note.read()
    assert mark is not None
    note.create(replace(mark, entry=mark.entry + 1, note=mark.note + 1))


@pytest.mark.usefixtures("nothing_is_served")
def test_a_journal_that_was_removed_is_refused(worn: Worn) -> None:
    shutil.rmtree(worn.journal)


@pytest.mark.usefixtures("nothing_is_served")
def test_without_the_note_an_unknown_broker_life_proves_it(worn: Worn) -> None:
    """As in a directory of a version that made no note."""
    worn.age()
    (worn.data / "objects" / FILE).unlink()


@pytest.mark.usefixtures("nothing_is_served")
def test_a_note_that_is_not_intact_is_no_reason_to_believe_the_journal(worn: Worn) -> None:
    worn.age()
    (worn.data / "objects" / FILE).write_bytes(b"?" * 1_024)


def test_an_accepted_loss_goes_on_with_a_life_that_no_object_has(worn: Worn) -> None:
    worn.age()
    lives = {path.parent.name for path in worn.objects}
    with (
        Server.started(worn.data.parent, "--accept-loss") as server,
        anabranch.connect(server.url) as service,
    ):
        orders = service.log("orders")
        assert [each.value for each in orders.read()] == [b"%d" % turn for turn in range(OLD)]
        orders.append(b"anew")
        (written,) = [path for path in worn.objects if path.parent.name not in lives]
        assert written.parent.name > max(lives)
    # It is the journal that counts now.
    with Server.started(worn.data.parent):
        pass


def test_what_was_given_up_is_in_quarantine_first_and_deleted_after_its_own_time(
    worn: Worn, tmp_path: Path
) -> None:
    worn.age()
    kept = worn.objects[:OLD]
    lost = {path.read_bytes() for path in worn.objects[OLD:]}
    config = tmp_path / "config.toml"
    config.write_text('log_format = "json"\n[limits]\ngc_interval_ms = 10\n')
    said = _said_until(worn, "--config", str(config), "--accept-loss", wanted="to quarantine")
    moved = [each for each in said if each["event"] == "moved an orphan to quarantine"]
    assert len(moved) == NEW
    assert {path.read_bytes() for path in worn.objects if "quarantine" in path.parts} == lost
    for each in moved:
        assert (worn.data / "objects" / str(each["to"])).exists()
        ObjectName.parse(str(each["object"]))
    config.write_text('log_format = "json"\n[limits]\ngc_interval_ms = 10\nquarantine_ms = 1\n')
    said = _said_until(worn, "--config", str(config), wanted="deleted an orphan")
    deleted = {each["object"] for each in said if "deleted an orphan" in str(each["event"])}
    assert deleted == {each["to"] for each in moved}
    assert [path for path in worn.objects if path in kept] == kept


def test_objects_that_a_crash_left_uncommitted_are_ordinary_orphans(worn: Worn) -> None:
    last = worn.objects[-1]
    for turn in range(1, 40):
        name = f"{int(last.name) + turn:0{len(last.name)}}"
        shutil.copy(last, last.with_name(name))
    with (
        Server.started(worn.data.parent) as server,
        anabranch.connect(server.url) as service,
    ):
        assert service.log("orders").tail() == OLD + NEW


def test_a_process_that_is_killed_never_leaves_its_journal_behind(worn: Worn) -> None:
    for _ in range(3):
        with (
            Server.started(worn.data.parent) as server,
            anabranch.connect(server.url) as service,
        ):
            service.log("orders").append(b"more")
            server.process.kill()
            server.process.wait()
        (worn.data / "endpoint").unlink()
    mark = WatermarkFile(str(worn.data / "objects")).read()
    assert mark is not None
    assert mark.lives == 5


def test_repair_refuses_to_take_what_an_older_journal_does_not_know_for_orphans(
    worn: Worn, capsys: pytest.CaptureFixture[str]
) -> None:
    """One entry short within a life: the last object looks like an orphan of a crash."""
    worn.age()
    before = worn.objects
    assert run(cli, PROGRAM, ["fsck", "--data", str(worn.data), "--repair"]) == Exit.BEHIND
    said = capsys.readouterr()
    assert "recover --data" in said.err
    assert worn.objects == before


def test_objects_that_the_journal_refers_to_are_brought_back_from_quarantine(
    worn: Worn, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever moved them knew an older journal; the newest one is there again."""
    before = worn.objects
    _into_quarantine(worn, before[OLD:])
    assert run(cli, PROGRAM, ["fsck", "--data", str(worn.data)]) == Exit.DAMAGE
    assert "in quarantine, from where the next start" in capsys.readouterr().out
    with (
        Server.started(worn.data.parent) as server,
        anabranch.connect(server.url) as service,
    ):
        values = [each.value for each in service.log("orders").read()]
        assert values == [b"%d" % turn for turn in range(OLD + NEW)]
    assert worn.objects == before
    assert run(cli, PROGRAM, ["fsck", "--data", str(worn.data)]) == Exit.OK


def test_fsck_calls_nothing_never_committed_while_entries_are_missing(
    worn: Worn, capsys: pytest.CaptureFixture[str]
) -> None:
    worn.age()
    orphan = worn.objects[OLD - 1]
    shutil.copy(orphan, orphan.with_name(f"{int(orphan.name) + 1:0{len(orphan.name)}}"))
    assert run(cli, PROGRAM, ["fsck", "--data", str(worn.data)]) == Exit.DAMAGE
    said = capsys.readouterr().out
    assert "unknown to this journal" in said
    assert "never committed" not in said


def _into_quarantine(worn: Worn, objects: list[Path]) -> None:
    for path in objects:
        to = Path(str(path).replace("/data/0", "/quarantine/0"))
        to.parent.mkdir(parents=True, exist_ok=True)
        path.rename(to)


Recover = Callable[[Path], tuple[int, dict[str, Any]]]


@pytest.fixture
def recovered(worn: Worn, capsys: pytest.CaptureFixture[str]) -> Recover:
    def command(into: Path) -> tuple[int, dict[str, Any]]:
        arguments = ["--data", str(worn.data), "--into", str(into), "-o", "json"]
        code = run(cli, PROGRAM, ["recover", *arguments])
        said = capsys.readouterr()
        return code, json.loads(said.out) if said.out else {"error": said.err}

    return command


def test_recover_rebuilds_what_an_older_journal_does_not_know(
    worn: Worn, recovered: Recover, tmp_path: Path
) -> None:
    worn.age()
    before = worn.objects
    into = tmp_path / "new"
    code, report = recovered(into / "data")
    assert (code, report["records"], report["recovered"]) == (Exit.OK, NEW, []), report
    assert worn.objects == before
    lives = {path.parent.name for path in worn.objects}
    with Server.started(into) as server, anabranch.connect(server.url) as service:
        orders = service.log("orders")
        values = [each.value for each in orders.read()]
        assert values == [b"%d" % turn for turn in range(OLD + NEW)]
        assert orders.append(b"on it goes").position == OLD + NEW
        written = {path.parent.name for path in (into / "data" / "objects").rglob("[0-9]*[0-9]")}
        assert max(written) > max(lives)
    assert run(cli, PROGRAM, ["fsck", "--data", str(into / "data")]) == Exit.OK


def test_recover_without_any_journal_gives_logs_names_of_their_own(
    worn: Worn, recovered: Recover, tmp_path: Path
) -> None:
    shutil.rmtree(worn.journal)
    code, report = recovered(tmp_path / "new" / "data")
    assert (code, report["records"]) == (Exit.OK, OLD + NEW), report
    (name,) = report["recovered"]
    with Server.started(tmp_path / "new") as server, anabranch.connect(server.url) as service:
        values = [each.value for each in service.log(name).read()]
        assert values == [b"%d" % turn for turn in range(OLD + NEW)]


def test_recover_finds_what_an_accepted_loss_put_into_quarantine(
    worn: Worn, recovered: Recover, tmp_path: Path
) -> None:
    worn.age()
    config = tmp_path / "config.toml"
    config.write_text('log_format = "json"\n[limits]\ngc_interval_ms = 10\n')
    _said_until(worn, "--config", str(config), "--accept-loss", wanted="to quarantine")
    shutil.rmtree(worn.journal)
    code, report = recovered(tmp_path / "new" / "data")
    assert (code, report["records"]) == (Exit.OK, OLD + NEW), report


def test_recover_gives_what_an_accepted_loss_gave_up_a_log_of_its_own(
    worn: Worn, recovered: Recover, tmp_path: Path
) -> None:
    worn.age()
    _accept_loss(worn, tmp_path)
    with Server.started(worn.data.parent) as server, anabranch.connect(server.url) as service:
        service.create("recovered-1")
    code, report = recovered(tmp_path / "new" / "data")
    assert (code, report["records"], report["given_up_records"]) == (Exit.OK, NEW, NEW), report
    assert (report["orphans"], report["recovered"]) == (0, [])
    (name,) = report["given_up"]
    assert name == "recovered-1-2"
    with Server.started(tmp_path / "new") as server, anabranch.connect(server.url) as service:
        values = [each.value for each in service.log(name).read()]
        assert values == [b"%d" % turn for turn in range(OLD, OLD + NEW)]
        values = [each.value for each in service.log("orders").read()]
        assert values == [b"%d" % turn for turn in range(OLD)]
        assert service.log("orders").append(b"on it goes").position == OLD
    assert run(cli, PROGRAM, ["fsck", "--data", str(tmp_path / "new" / "data")]) == Exit.OK


def test_orphans_of_a_crash_are_never_taken_for_what_was_given_up(
    worn: Worn, recovered: Recover, tmp_path: Path
) -> None:
    """After the loss was accepted, and in a life that is over since."""
    worn.age()
    _accept_loss(worn, tmp_path)
    with Server.started(worn.data.parent) as server, anabranch.connect(server.url) as service:
        service.log("orders").append(b"anew")
    written = max(each for each in worn.objects if "/data/0" in str(each))
    shutil.copy(written, written.with_name(f"{int(written.name) + 1:0{len(written.name)}}"))
    with Server.started(worn.data.parent):
        pass
    _, report = recovered(tmp_path / "new" / "data")
    assert (report["given_up_records"], report["orphans"]) == (NEW, 1), report


def test_a_journal_that_was_given_up_is_recovered_with_what_came_after_in_a_log_of_its_own(
    worn: Worn, recovered: Recover, tmp_path: Path
) -> None:
    newest = Path(shutil.copytree(worn.journal, tmp_path / "newest"))
    worn.age()
    _accept_loss(worn, tmp_path)
    with Server.started(worn.data.parent) as server, anabranch.connect(server.url) as service:
        service.log("orders").append(b"anew")
    shutil.rmtree(worn.journal)
    shutil.copytree(newest, worn.journal)
    with pytest.raises(JournalBehind) as refused:
        asyncio.run(serve(Settings(data=str(worn.data), port=0), stop=asyncio.Event()))
    assert "First run `anabranch recover" in refused.value.message
    code, report = recovered(tmp_path / "new" / "data")
    assert (code, report["given_up_records"]) == (Exit.OK, 1), report
    (name,) = report["given_up"]
    with Server.started(tmp_path / "new") as server, anabranch.connect(server.url) as service:
        assert [each.value for each in service.log(name).read()] == [b"anew"]
        values = [each.value for each in service.log("orders").read()]
        assert values == [b"%d" % turn for turn in range(OLD + NEW)]


def test_an_older_copy_that_is_put_back_again_after_its_loss_was_accepted_is_no_newest_one(
    worn: Worn, tmp_path: Path
) -> None:
    worn.age()
    _accept_loss(worn, tmp_path)
    worn.age()
    with pytest.raises(JournalBehind, match="Put the newest copy"):
        asyncio.run(serve(Settings(data=str(worn.data), port=0), stop=asyncio.Event()))


def _accept_loss(worn: Worn, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('log_format = "json"\n[limits]\ngc_interval_ms = 10\n')
    _said_until(worn, "--config", str(config), "--accept-loss", wanted="to quarantine")


def test_recover_takes_no_record_twice_and_nothing_into_a_directory_in_use(
    worn: Worn, recovered: Recover, tmp_path: Path
) -> None:
    """As if compaction had copied the last objects; the journal knows nothing of it."""
    shutil.rmtree(worn.journal)
    last = worn.objects[-1]
    copy = last.with_name(f"{int(last.name) + 1:0{len(last.name)}}")
    shutil.copy(last, copy)
    code, report = recovered(tmp_path / "new")
    assert (code, report["records"], report["repeated"]) == (Exit.OK, OLD + NEW, 1), report
    code, report = recovered(tmp_path / "new")
    assert code == Exit.REFUSED
    assert "something is stored there" in report["error"]


def test_recover_leaves_out_what_is_damaged_and_says_so(
    worn: Worn, recovered: Recover, tmp_path: Path
) -> None:
    shutil.rmtree(worn.journal)
    content = bytearray(worn.objects[2].read_bytes())
    content[40] ^= 1
    worn.objects[2].write_bytes(content)
    code, report = recovered(tmp_path / "new")
    assert (code, report["records"]) == (Exit.DAMAGE, OLD + NEW - 1), report
    assert worn.objects[2].name in report["damaged"][0]


def _said_until(worn: Worn, *options: str, wanted: str) -> list[dict[str, object]]:
    """Log lines of a server that is ended after the last one that is wanted."""
    command = [*ANABRANCH, "up", "--data", str(worn.data), "--port", "0", "--no-http", *options]
    said: list[dict[str, object]] = []
    with subprocess.Popen(command, env=bare(), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            said.append(json.loads(line))
            if sum(wanted in str(each["event"]) for each in said) == NEW:
                break
        process.terminate()
    return said
