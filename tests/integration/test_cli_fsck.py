"""fsck on a real data directory: whole, worn, and damaged in every way that it tells apart."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.integration.cli_server import Server

import anabranch
from anabranch.cli.failure import Exit, run
from anabranch.cli.main import PROGRAM, cli
from anabranch.core.records.record import Record, encode

RECORDS = 3_000


@dataclass(frozen=True, slots=True)
class JournalContents:
    code: int
    report: dict[str, Any]
    err: str

    @property
    def codes(self) -> set[str]:
        return {fault["code"] for fault in self.report["faults"]}

    @property
    def reasons(self) -> str:
        return "\n".join(f"{fault['where']}: {fault['reason']}" for fault in self.report["faults"])


Fsck = Callable[..., JournalContents]


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with forks of every kind, a promotion, a squash and a trim behind it."""
    with (
        Server.started(tmp_path_factory.mktemp("fsck")) as server,
        anabranch.connect(server.url) as service,
    ):
        orders = service.create("orders")
        for start in range(0, RECORDS, 100):
            records = [Record(b"%d" % (start + turn)) for turn in range(100)]
            orders.append_batch(encode(records, now=0))  # one batch, one object
        mine = orders.cfork("mine")
        mine.append_many([b"mine"] * 10)
        orders.sfork("past", past=999).append(b"otherwise")
        doomed = orders.cfork("doomed")
        doomed.append_many([b"doomed"] * 10)
        doomed.sfork("orphan").append(b"kept")
        doomed.squash()
        plan = orders.cfork("plan", promotable=True)
        plan.append(b"planned")
        orders.append(b"held")
        plan.promote()
        waste = service.create("waste")
        waste.append_many([b"waste"] * 10)
        service.delete("waste")
        orders.trim(150)
    return server.data


@pytest.fixture
def data(lived_in: Path, tmp_path: Path) -> Path:
    """A copy to be damaged."""
    return Path(shutil.copytree(lived_in, tmp_path / "data"))


@pytest.fixture
def fsck(data: Path, capsys: pytest.CaptureFixture[str]) -> Fsck:
    def command(*options: str) -> JournalContents:
        code = run(cli, PROGRAM, ["fsck", "--data", str(data), "-o", "json", *options])
        said = capsys.readouterr()
        return JournalContents(code, json.loads(said.out) if said.out else {}, said.err)

    return command


def objects(data: Path) -> list[Path]:
    """In the order in which they were written."""
    return sorted(path for path in (data / "objects").rglob("[!.]*") if path.is_file())


def segment(data: Path) -> Path:
    (found,) = (data / "journal").glob("*.segment")
    return found


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 0x10
    path.write_bytes(content)


def everything(data: Path) -> dict[str, bytes]:
    """But for the lock, and the note of how far the journal went."""
    return {
        str(path.relative_to(data)): path.read_bytes()
        for path in data.rglob("*")
        if path.is_file() and path.name not in {"lock", ".reached"}
    }


def test_a_directory_that_was_lived_in_is_sound_and_stays_as_it_is(fsck: Fsck, data: Path) -> None:
    before = everything(data)
    found = fsck()
    assert found.code == Exit.OK
    assert found.report["sound"] is True
    assert found.report["logs"] == 1
    assert found.report["forks"] == 3
    assert found.report["garbage"]["objects"] >= 2
    assert found.report["orphans"] == {"objects": 0, "bytes": 0}
    assert found.report["records"] >= RECORDS
    assert everything(data) == before


def test_people_get_sentences(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(cli, PROGRAM, ["fsck", "--data", str(data)]) == Exit.OK
    said = capsys.readouterr().out
    assert said.splitlines()[-1] == "sound"
    assert "deleted when their grace period is over" in said
    objects(data)[-1].unlink()
    flip(objects(data)[7], 40)
    assert run(cli, PROGRAM, ["fsck", "--data", str(data)]) == Exit.DAMAGE
    assert "DAMAGED" in capsys.readouterr().out


def test_a_directory_in_use_is_read_and_not_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (
        Server.started(tmp_path) as server,
        anabranch.connect(server.url) as service,
    ):
        orders = service.create("orders")
        for turn in range(20):
            orders.append(b"%d" % turn)
        command = ["fsck", "--data", str(server.data)]
        assert run(cli, PROGRAM, [*command, "-o", "json"]) == Exit.OK
        report = json.loads(capsys.readouterr().out)
        assert report["online"] is True
        assert report["records"] == 20
        for change in ("--repair", "--cut-journal"):
            assert run(cli, PROGRAM, [*command, change, "--yes"]) == Exit.REFUSED
            assert "in use by process" in capsys.readouterr().err
        flip(objects(server.data)[7], 40)
        assert run(cli, PROGRAM, command) == Exit.DAMAGE
        said = capsys.readouterr().out
        assert "orders 7..7" in said
        assert "reading goes on at 8" in said
        orders.append(b"more")


@pytest.mark.parametrize("at", [0, 8, 17, 30, 61, 80])
def test_a_flipped_bit_in_a_batch_names_the_records_it_costs(
    fsck: Fsck, data: Path, at: int
) -> None:
    """All of its header but the base offset, which is rewritten for every reader, and its body."""
    victim = objects(data)[5]
    flip(victim, at)
    found = fsck()
    if at < 8:
        assert found.code == Exit.OK
        return
    assert found.code == Exit.DAMAGE
    assert "lost-records" in found.codes
    assert "orders 500..599" in found.reasons
    assert victim.name in found.reasons


def test_a_damaged_footer_is_told_from_damaged_records(fsck: Fsck, data: Path) -> None:
    flip(objects(data)[5], objects(data)[5].stat().st_size - 9)
    found = fsck()
    assert found.code == Exit.DAMAGE
    assert found.codes == {"corrupt-object"}


def test_a_missing_object_names_the_records_it_takes_with_it(fsck: Fsck, data: Path) -> None:
    objects(data)[5].unlink()
    found = fsck()
    assert found.code == Exit.DAMAGE
    assert found.codes == {"object-missing"}
    assert "orders 500..599" in found.reasons


def test_a_shortened_object_is_damage(fsck: Fsck, data: Path) -> None:
    victim = objects(data)[5]
    victim.write_bytes(victim.read_bytes()[:100])
    found = fsck()
    assert found.code == Exit.DAMAGE
    assert {"corrupt-object", "lost-records"} <= found.codes


def test_another_objects_content_is_seen(fsck: Fsck, data: Path) -> None:
    """Whole, every checksum right, and in the wrong place."""
    one, other = objects(data)[5], objects(data)[-1]
    one.write_bytes(other.read_bytes())
    found = fsck()
    assert found.code == Exit.DAMAGE
    assert "lost-records" in found.codes


def test_an_orphan_is_no_damage_and_repair_moves_it_to_quarantine(fsck: Fsck, data: Path) -> None:
    written = objects(data)[-1]
    orphan = written.with_name(f"{int(written.name) + 7:0{len(written.name)}}")
    shutil.copy(written, orphan)
    found = fsck()
    assert found.code == Exit.OK
    assert found.report["orphans"] == {"objects": 1, "bytes": orphan.stat().st_size}
    assert orphan.exists()
    before = set(objects(data))
    found = fsck("--repair")
    assert found.code == Exit.OK
    assert found.report["orphans"]["objects"] == 0
    assert "moved 1 orphan," in found.report["done"][0]
    assert found.report["quarantine"] == {"objects": 1, "bytes": written.stat().st_size}
    (moved,) = set(objects(data)) - before
    assert moved.read_bytes() == written.read_bytes()
    assert "quarantine" in moved.parts
    assert not orphan.exists()


def test_what_is_not_ours_is_named_and_left_alone(fsck: Fsck, data: Path) -> None:
    (data / "objects" / "notes.txt").write_text("mine")
    found = fsck("--repair")
    assert found.code == Exit.OK
    assert found.report["strangers"] == ["notes.txt"]
    assert (data / "objects" / "notes.txt").exists()


def test_an_object_of_an_unknown_broker_means_that_the_journal_lost_its_end(
    fsck: Fsck, data: Path
) -> None:
    written = objects(data)[-1]
    epoch = written.parent.with_name(f"{int(written.parent.name) + 3:0{len(written.parent.name)}}")
    epoch.mkdir()
    shutil.copy(written, epoch / written.name)
    found = fsck()
    assert found.code == Exit.DAMAGE
    assert found.codes == {"journal-behind"}
    assert fsck("--repair").code == Exit.BEHIND
    assert (epoch / written.name).exists()


def test_a_torn_end_of_the_journal_is_noted(fsck: Fsck, data: Path) -> None:
    with segment(data).open("ab") as journal:
        journal.write(b"\xabGRP and then the power went")
    found = fsck()
    assert found.code == Exit.OK
    assert "unfinished write" in found.report["notes"][0]


def test_a_damaged_journal_says_what_a_cut_costs_and_changes_nothing(
    fsck: Fsck, data: Path
) -> None:
    flip(segment(data), segment(data).stat().st_size // 2)
    before = everything(data)
    found = fsck()
    assert found.code == Exit.DAMAGE
    assert "journal-corrupt" in found.codes
    cut = found.report["cut"]
    assert cut["file"] == str(segment(data))
    assert 0 < cut["offset"] < segment(data).stat().st_size
    assert cut["lost"] > 0
    assert cut["commands"]["ForkLog"] == 5
    assert cut["records"] > 0
    assert everything(data) == before
    refused = fsck("--cut-journal")
    assert refused.code == Exit.USAGE
    assert "--yes" in refused.err
    assert everything(data) == before


def test_repair_is_refused_while_the_journal_is_damaged(fsck: Fsck, data: Path) -> None:
    """What is behind the damage may refer to what looks like orphans."""
    flip(segment(data), segment(data).stat().st_size // 2)
    before = everything(data)
    refused = fsck("--repair")
    assert refused.code == Exit.REFUSED
    assert "--cut-journal" in refused.err
    assert everything(data) == before


def test_a_cut_journal_goes_on_and_nothing_is_thrown_away(fsck: Fsck, data: Path) -> None:
    flip(segment(data), segment(data).stat().st_size // 2)
    before = everything(data)
    found = fsck("--cut-journal", "--yes")
    assert found.code == Exit.OK, found.reasons
    assert "cut the journal" in found.report["done"][0]
    assert set(before.values()) <= set(everything(data).values())
    with Server.started(data.parent) as server, anabranch.connect(server.url) as service:
        orders = service.log("orders")
        tail = orders.tail()
        assert 0 < tail < RECORDS
        assert [int(each.value or b"") for each in orders.read()] == list(range(tail))
        assert orders.append(b"on it goes").position == tail
    assert fsck().code == Exit.OK


def test_a_journal_damaged_at_its_first_entry_can_be_given_up(fsck: Fsck, data: Path) -> None:
    """Not even the broker's life is known then, whose objects would be in the next one's way."""
    flip(segment(data), 200)
    found = fsck("--cut-journal", "--yes")
    assert found.code == Exit.OK, found.reasons
    assert found.report["logs"] == 0
    with Server.started(data.parent) as server, anabranch.connect(server.url) as service:
        assert service.create("orders").append(b"anew").position == 0
    assert fsck().code == Exit.OK


def test_a_sound_journal_is_not_cut(fsck: Fsck, data: Path) -> None:
    before = everything(data)
    assert fsck("--cut-journal", "--yes").code == Exit.OK
    assert everything(data) == before
