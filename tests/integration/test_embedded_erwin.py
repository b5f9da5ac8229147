"""Erwin logs that `anabranch up` runs beside its own: created, served, killed, deleted."""

import shutil
import signal
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.integration.server_process import Line, Process, batch, running

from anabranch.core.bolt.protocol.commands import Description, EngineSettings
from anabranch.core.bolt.protocol.messages import CreateLog, DeleteLog, Describe, SetQuota
from anabranch.core.errors import JournalBehind
from anabranch.core.errors.refused import Refused
from anabranch.core.erwin.protocol.messages import Read, Records
from anabranch.core.quota import Quota
from anabranch.core.records.record import decode
from anabranch.core.sequencing.protocol.ids import AppendId
from anabranch.core.sequencing.protocol.messages import (
    Append,
    Directory,
    Elsewhere,
    FindPosition,
    Found,
    Inspect,
    Locate,
    SequencingStatus,
    Taken,
)

PRODUCER = 9


def created(
    line: Line, name: str, shards: int = 1, replicas: int = 1, sequencers: int = 1, **more: str
) -> Description:
    settings = replace(EngineSettings(shards, replicas, sequencers), **more)
    made = line.call(CreateLog(name, name.encode(), engine="erwin", settings=settings))
    assert isinstance(made, Description), made
    return made


def directory(process: Process, log: Description) -> Directory:
    """Once appends are taken, and every shard has a primary."""
    assert log.settings is not None
    shards = log.settings.shards

    def is_complete(answer: object) -> bool:
        return (
            isinstance(answer, Directory)
            and len(answer.members) > 0
            and sum(bool(shard.primary) for shard in answer.shards) == shards
        )

    return process.node(log, "sequencer-0").until(Locate(), is_complete)


def append(process: Process, log: Description, first: int, count: int) -> None:
    """To all members; on return the records are durable, and have positions."""
    number, end = first, first + count
    while number < end:
        known = directory(process, log)
        members = [process.node(log, node.rpartition("/")[2]) for node in known.members]
        while number < end:
            message = Append(known.view, number, batch(number, PRODUCER))
            answers = [member.call(message) for member in members]
            if not all(isinstance(each, Taken) for each in answers):
                codes = {each.code for each in answers if isinstance(each, Refused)}
                # A member may have yet to hear that its view has started.
                assert codes <= {"outcome-unknown", "stale-view", "unavailable"}, answers
                break
            number += 1
    last = FindPosition(AppendId(PRODUCER, 0, end - 1))
    leader = process.node(log, directory(process, log).leader.rpartition("/")[2])
    assert leader.until(last, lambda answer: isinstance(answer, Found)) == Found(end - 1)


def values(process: Process, log: Description, upto: int) -> list[int]:
    """The log's records, from every shard's primary."""
    found: list[tuple[int, int]] = []
    for shard in directory(process, log).shards:
        line = process.node(log, shard.primary.rpartition("/")[2])
        at = 0
        while at < upto:
            read = Read(
                shard=shard.name, start=at, bytes_max=1 << 20, records_max=1_000, wait_ms=10_000
            )
            answer = line.call(read)
            assert isinstance(answer, Records), answer
            assert answer.upto > at
            for first, content in zip(answer.firsts, answer.batches, strict=True):
                for nth, record in enumerate(decode(content) if content else ()):
                    found.append((first + nth, int(record.value or b"")))
            at = answer.upto
    positions = sorted(found)
    assert [position for position, _ in positions] == list(range(len(positions)))
    return [value for _, value in positions]


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 2, 3)])
def test_a_log_is_served_and_again_after_a_restart(
    tmp_path: Path, shape: tuple[int, int, int]
) -> None:
    with running(tmp_path) as process:
        log = created(process.line(), "audit", *shape)
        assert log.settings is not None
        assert (log.settings.mode, log.settings.durability) == ("m", "fsync")
        assert log.settings.addresses[0] == f"/{log.id}/sequencer-0"
        append(process, log, 0, 20)
        assert values(process, log, 20) == list(range(20))
        assert process.end(signal.SIGTERM) == 0
    shards, replicas, sequencers = shape
    nodes = shards * replicas + sequencers + 1
    assert len(list((tmp_path / "erwin").glob("audit.*/*"))) == nodes
    with running(tmp_path) as process:
        again = process.line().call(Describe("audit"))
        assert isinstance(again, Description)
        append(process, again, 20, 5)
        assert values(process, again, 25) == list(range(25))


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    with running(tmp_path) as process:
        log = created(process.line(), "audit", 2, 2, 2)
        append(process, log, 0, 30)
        process.end(signal.SIGKILL)
    with running(tmp_path) as process:
        assert values(process, log, 30) == list(range(30))


def test_the_leader_says_how_the_log_is(tmp_path: Path) -> None:
    with running(tmp_path) as process:
        log = created(process.line(), "audit", 2, 1, 2, durability="memory")
        append(process, log, 0, 10)
        leader = directory(process, log).leader.rpartition("/")[2]
        line = process.node(log, leader)
        status = line.until(
            Inspect(), lambda answer: isinstance(answer, SequencingStatus) and answer.stable == 10
        )
        assert (status.durability, status.mode, status.tail) == ("memory", "m", 10)
        assert sum(shard.records for shard in status.shards) == 10
        other = "sequencer-1" if leader == "sequencer-0" else "sequencer-0"
        assert process.node(log, other).call(Inspect()) == Elsewhere(status.leader)


def test_a_deleted_logs_machines_and_folder_are_gone(tmp_path: Path) -> None:
    with running(tmp_path) as process:
        line = process.line()
        log, kept = created(line, "audit"), created(line, "kept")
        append(process, log, 0, 3)
        node = process.node(log, "shard-0-0")
        line.call(DeleteLog(log.id, b"delete"))
        with pytest.raises(ConnectionError):
            node.hear()
        described = line.call(Describe("audit"))
        assert isinstance(described, Refused)
        append(process, kept, 0, 3)
        assert process.end(signal.SIGTERM) == 0
    assert {path.name.partition(".")[0] for path in (tmp_path / "erwin").iterdir()} == {"kept"}


def _folder(data: Path) -> Path:
    (folder,) = (data / "erwin").glob("audit.*")
    return folder


@pytest.mark.parametrize("node", ["sequencer-0", "shard-0-1"])
def test_a_journal_that_is_gone_is_filled_from_the_others(tmp_path: Path, node: str) -> None:
    with running(tmp_path) as process:
        log = created(process.line(), "audit", 1, 2, 2)
        append(process, log, 0, 10)
        assert process.end(signal.SIGTERM) == 0
    shutil.rmtree(_folder(tmp_path) / node)
    with running(tmp_path) as process:
        append(process, log, 10, 5)
        assert values(process, log, 15) == list(range(15))
    assert (_folder(tmp_path) / node).is_dir()


@pytest.mark.parametrize("node", ["controller-0", "sequencer-0", "shard-0-0"])
def test_a_log_whose_only_journal_of_a_kind_is_gone_is_not_served_as_an_empty_one(
    tmp_path: Path, node: str
) -> None:
    with running(tmp_path) as process:
        log = created(process.line(), "audit")
        append(process, log, 0, 3)
        assert process.end(signal.SIGTERM) == 0
    shutil.rmtree(_folder(tmp_path) / node)
    with running(tmp_path) as process, pytest.raises(JournalBehind, match="--accept-loss"):
        process.node(log, "sequencer-0")
    with running(tmp_path, "--accept-loss") as process:
        append(process, log, 0, 1)
        assert values(process, log, 1) == [0]


def test_a_quota_counts_an_append_once_however_many_members_get_it(tmp_path: Path) -> None:
    with running(tmp_path) as process:
        line = process.line()
        log = created(line, "audit", 1, 1, 3)
        known = directory(process, log)
        quota = Quota(append_records_per_s=1, burst_ms=1_000)
        line.call(SetQuota(log.id, quota, b"quota"))
        members = [process.node(log, node.rpartition("/")[2]) for node in known.members]
        for number in range(2):
            content = Append(known.view, number, batch(number, PRODUCER))
            assert {type(member.call(content)) for member in members} == {Taken}
        over = Append(known.view, 2, batch(2, PRODUCER))
        refused = [member.call(over) for member in members]
        assert {each.code for each in refused} == {"quota-exceeded"}
