"""A quota of a Belfast log, from the command line to the refusal, and over a restart."""

import json
import subprocess
from pathlib import Path

import pytest
from tests.commands import Command
from tests.integration.cli_server import ANABRANCH, Server

import anabranch
from anabranch import Quota
from anabranch.cli.failure import Exit
from anabranch.core.errors import BadRequest, QuotaExceeded

CREATE = ("--engine", "belfast", "--shards", "2")


def refused(said: str) -> tuple[str, str]:
    error = json.loads(said.splitlines()[-1])["error"]
    return error["code"], error["facts"]["log"]


def test_a_quota_holds_for_all_shards_together_and_can_be_lifted(
    anabranch: Command, log: str
) -> None:
    anabranch("log", "create", log, *CREATE)
    anabranch("append", log, "its shards are known")
    assert "no quota" in anabranch("log", "quota", log).out
    anabranch("log", "quota", log, "--append-records", "1/s", "--burst", "1ms")
    assert anabranch("log", "quota", log, "-o", "json").json["append_records_per_s"] == 1
    many = [str(each) for each in range(100)]
    anabranch("append", log, "--shard", "shard-0", "--request-id", "one batch", *many)
    short = ("--timeout", "2s", "-o", "json")
    over = anabranch("append", log, "--shard", "shard-1", "x", *short, code=Exit.BLOCKED)
    assert refused(over.err) == ("quota-exceeded", log), "the other shard shares the quota"
    assert len(anabranch("read", log, "-o", "json").lines) == 101, "what is over isn't there"
    anabranch("log", "quota", log, "--append-records", "none")
    anabranch("append", log, "--shard", "shard-1", "y")
    assert anabranch("log", "show", log, "-o", "json").json["quota"] is None


def test_a_program_waits_a_quota_out_and_is_told_what_cant_be_limited(
    server: Server, log: str
) -> None:
    with anabranch.connect(server.url) as service:
        ticks = service.create(log, engine="belfast")
        with pytest.raises(BadRequest, match="reads of logs of the belfast engine aren't limited"):
            ticks.set_quota(Quota(read_bytes_per_s=1))
        ticks.set_quota(Quota(append_bytes_per_s=10_000, burst_ms=1))
        assert ticks.describe().quota == Quota(append_bytes_per_s=10_000, burst_ms=1)
        ticks.append(b"x" * 10_000)
        first = ticks.append(b"after a second")
        assert first.position is not None
        ticks.set_quota(Quota(append_bytes_per_s=1, burst_ms=1))
        ticks.append(b"y" * 10_000)
        with pytest.raises(QuotaExceeded):
            ticks.append(b"z", timeout=0.2)
        ticks.set_quota(Quota())
        ticks.append(b"z")


def test_a_quota_is_there_after_a_restart(tmp_path: Path) -> None:
    def run(server: Server, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*ANABRANCH, *words],
            env=server.environment,
            check=False,
            capture_output=True,
            text=True,
        )

    with Server.started(tmp_path) as server:
        assert run(server, "log", "create", "ticks", *CREATE).returncode == 0
        rate = ("--append-bytes", "1/s", "--burst", "1ms")
        assert run(server, "log", "quota", "ticks", *rate).returncode == 0
    with Server.started(tmp_path) as server:
        assert run(server, "append", "ticks", "once overdrawn").returncode == 0
        over = run(server, "append", "ticks", "x", "--timeout", "2s", "-o", "json")
        assert refused(over.stderr) == ("quota-exceeded", "ticks")
