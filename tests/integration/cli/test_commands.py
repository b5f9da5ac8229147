"""Every command against a running server, as a person or a script sees it."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from tests.commands import Command
from tests.integration.cli_server import ANABRANCH, Server

from anabranch.cli.failure import Exit

A_MOMENT_S = 60


def test_a_log_is_created_listed_shown_and_deleted(anabranch: Command, log: str) -> None:
    assert "0 records" in anabranch("log", "create", log, "--why", "a reason").out
    shown = anabranch("log", "show", log, "-o", "json").json
    assert (shown["name"], shown["kind"], shown["by"], shown["why"]) == (
        log,
        "root",
        "tester",
        "a reason",
    )
    assert [each["name"] for each in anabranch("log", "list", log, "-o", "json").lines] == [log]
    assert log in anabranch("log", "list").out
    anabranch("log", "create", log, code=Exit.REFUSED)
    anabranch("log", "create", log, "--if-missing")
    anabranch("fork", log, "one")
    assert "1 forks" in anabranch("log", "delete", log, code=Exit.REFUSED).err
    assert anabranch("log", "delete", log, "--force", "-o", "json").json == {"deleted": log}
    said = anabranch("log", "show", log, "-o", "json", code=Exit.REFUSED)
    assert json.loads(said.err)["error"]["code"] in {"unknown-log", "squashed"}


def test_arguments_are_records_with_key_and_headers(anabranch: Command, log: str) -> None:
    anabranch("log", "create", log)
    said = anabranch(
        "append", log, "one", "two", "--key", "k", "-H", "a=1", "-H", "b=", "-o", "json"
    )
    assert (said.json["position"], said.json["last"], said.json["count"]) == (0, 1, 2)
    assert said.json["receipt"] is None
    read = anabranch("read", log, "-o", "json").lines
    headers = [{"name": "a", "value": "1"}, {"name": "b", "value": ""}]
    assert [(each["key"], each["value"], each["headers"]) for each in read] == [
        ("k", "one", headers),
        ("k", "two", headers),
    ]
    assert anabranch("read", log).out.splitlines() == [
        "       0  [k]  one",
        "       1  [k]  two",
    ]


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_lines_of_stdin_are_records(anabranch: Command, log: str, compression: str) -> None:
    anabranch("log", "create", log)
    lines = b"".join(b"line %d\n" % number for number in range(30_000)) + b"no newline at the end"
    said = anabranch(
        "append", log, "--lines", "--batch", "7000", "--compression", compression, stdin=lines
    )
    assert "30001 records" in said.out
    assert anabranch("read", log, "--format", "raw").out.encode() == lines + b"\n"


def test_files_are_records_whole_or_line_by_line(
    anabranch: Command, log: str, tmp_path: Path
) -> None:
    content = bytes(range(256))
    (tmp_path / "a").write_bytes(content)
    (tmp_path / "b").write_bytes(b"one\ntwo\n")
    anabranch("log", "create", log)
    anabranch("append", log, "-f", str(tmp_path / "a"), "-f", str(tmp_path / "b"))
    anabranch("append", log, "--lines", "-f", str(tmp_path / "b"))
    anabranch("append", log, stdin=b"all of\nstdin")
    whole, *rest = anabranch("read", log, "-o", "json").lines
    assert whole["encoding"] == "base64"
    assert [each["value"] for each in rest] == ["one\ntwo\n", "one", "two", "all of\nstdin"]
    raw = anabranch("read", log, "--limit", "1", "--format", "raw").out
    assert raw.encode("utf-8", "surrogateescape") == content + b"\n"


def test_nothing_to_append_is_no_error(anabranch: Command, log: str) -> None:
    anabranch("log", "create", log)
    assert "nothing to append" in anabranch("append", log, "--lines", stdin=b"").out


def test_reading_begins_and_ends_where_it_is_told(anabranch: Command, log: str) -> None:
    anabranch("log", "create", log)
    assert anabranch("read", log).out == ""
    anabranch("append", log, *map(str, range(20)))

    def values(*options: str) -> list[str]:
        return anabranch("read", log, "--format", "raw", *options).out.split()

    assert values() == [str(number) for number in range(20)]
    assert values("--from", "5", "--limit", "3") == ["5", "6", "7"]
    assert values("--from", "-2") == ["18", "19"]
    assert values("--from", "20") == []
    assert anabranch("tail", log, "-n", "2", "--format", "raw").out.split() == ["18", "19"]
    assert anabranch("trim", log, "--before", "3").out == f"{log} now begins at 3\n"
    assert values("--limit", "1") == ["3"]
    anabranch("read", log, "--from", "2", code=Exit.REFUSED)


def test_a_fork_interleaves_and_names_origins(anabranch: Command, log: str) -> None:
    anabranch("log", "create", log)
    anabranch("append", log, "a", "b")
    made = anabranch("fork", log, "mine", "--ttl", "1h", "--why", "to try", "-o", "json").json
    assert made["name"] == f"{log}--mine"
    assert (made["kind"], made["fork_point"], made["by"], made["why"]) == (
        "continuous",
        2,
        "tester",
        "to try",
    )
    assert made["expires_at"] > made["created_at"]
    anabranch("append", f"{log}@mine", "own")
    anabranch("append", log, "c")
    read = anabranch("read", f"{log}--mine", "--origins").out.split()
    assert read == ["0", f"{log}:0", "a", "1", f"{log}:1", "b", "2", f"{log}--mine:2", "own", "3",
                    f"{log}:2", "c"]  # fmt: skip
    assert anabranch("read", log, "--format", "raw").out.split() == ["a", "b", "c"]


def test_a_severed_fork_begins_at_a_position_or_a_time(anabranch: Command, log: str) -> None:
    anabranch("log", "create", log)
    anabranch("append", log, "a", "b", "c")
    before = anabranch("fork", log, "one", "--at", "1", "-o", "json").json
    assert (before["kind"], before["fork_point"], before["tail"]) == ("severed", 1, 1)
    now = anabranch("fork", log, "all", "--severed", "-o", "json").json
    assert now["fork_point"] == 3
    past = anabranch("fork", log, "none", "--at", "1h ago", "-o", "json")
    assert past.json["fork_point"] == 0
    compared = anabranch("diff", log, f"{log}--one", "-o", "json").json
    assert compared["shared"] == 1
    assert compared["a"]["ranges"] == [[1, 3]]
    assert [each["value"] for each in compared["a"]["first"]] == ["b", "c"]
    assert compared["b"]["records"] == 0
    assert "only in" in anabranch("diff", log, f"{log}--one", "--limit", "1").out
    summed = anabranch("sum", log, "--from", "1", "-o", "json").json
    left_out = sum(end - first for first, end in summed["not_summed"])
    assert (summed["records"], summed["summed"] + left_out) == (2, 2)
    whole = anabranch("sum", log, "-o", "json").json
    assert whole["summed"] == 3
    assert f"{whole['sum']:08x} of 3 records" in anabranch("sum", log).out
    anabranch("trim", f"{log}--one", "--before", "1")
    compared = anabranch("diff", log, f"{log}--one", "-o", "json").json
    assert (compared["since"], compared["a"]["not_comparable"]) == (1, [[0, 1]])
    said = anabranch("diff", log, f"{log}--one").out
    assert "nothing in common from position 1 on" in said
    assert f"not comparable: 1 record of {log}, which {log}--one may have had" in said


def test_promote_takes_one_and_squashes_the_others(anabranch: Command, log: str) -> None:
    anabranch("log", "create", log)
    anabranch("append", log, "a")
    anabranch("fork", log, "left", "--promotable")
    anabranch("fork", log, "right", "--promotable")
    anabranch("append", f"{log}--right", "right")
    held = anabranch("append", log, "held", "-o", "json").json
    assert held["position"] is None
    assert held["receipt"].endswith(".0.1")
    assert "withheld" in anabranch("append", log, "too").out
    said = anabranch("read", log)
    assert said.out.split() == ["0", "a"]
    assert "not shown: 2 provisional records" in said.err
    blocked = anabranch("read", log, "--from", "1", code=Exit.BLOCKED).err
    assert f"{log}--left" in blocked
    speculative = anabranch("tail", log, "--speculative", "-o", "json").lines
    assert [(each["value"], each["speculative"]) for each in speculative] == [
        ("a", False),
        ("held", True),
        ("too", True),
    ]
    done = anabranch("promote", f"{log}--right", "-o", "json").json
    assert (done["into"], done["records"], done["squashed"]) == (log, 1, [f"{log}--left"])
    assert anabranch("read", log, "--format", "raw").out.split() == ["a", "right", "held", "too"]
    told = anabranch("read", log, "-o", "json").lines
    right, born = f"{log}--right", [each["origin"] for each in told]
    assert [(each["log"], each["position"]) for each in born] == [
        (log, 0), (right, 1), (log, 1), (log, 2),
    ]  # fmt: skip
    assert len({each["id"] for each in told}) == 4
    assert f"{right}:1  right" in anabranch("read", log, "--origins").out
    assert log in anabranch("append", f"{log}--right", "late", code=Exit.REFUSED).err
    assert "squashed" in anabranch("promote", f"{log}--left", code=Exit.REFUSED).err


def test_a_tree_shows_forks_below_forks(anabranch: Command, log: str) -> None:
    anabranch("log", "create", log)
    anabranch("append", log, "a")
    anabranch("fork", log, "child")
    anabranch("fork", f"{log}--child", "grandchild", "--promotable", "--why", "deeper")
    anabranch("fork", log, "apart", "--severed")
    (top,) = anabranch("tree", log, "-o", "json").json
    child, grandchild = f"{log}--child", f"{log}--grandchild"
    assert top["root"] == log
    assert [(each["name"], each["parent"]) for each in top["logs"]] == [
        (log, None),
        (child, log),
        (grandchild, child),
        (f"{log}--apart", log),
    ]
    drawn = anabranch("tree", log).out
    assert "│   └── " in drawn
    assert "deeper" in drawn
    assert f"{grandchild} is undecided" in drawn
    (part,) = anabranch("tree", f"{log}--child", "-o", "json").json
    assert [each["name"] for each in part["logs"]] == [child, grandchild]
    assert anabranch("squash", f"{log}--child", "-o", "json").json == {"squashed": f"{log}--child"}
    (top,) = anabranch("tree", log, "-o", "json").json
    assert [each["name"] for each in top["logs"]] == [log, f"{log}--apart"]


def test_cursors_are_kept(anabranch: Command, log: str) -> None:
    anabranch("log", "create", log)
    anabranch("append", log, "a", "b", "c")
    anabranch("cursor", "set", log, "reader", "2")
    assert anabranch("cursor", "get", log, "reader", "-o", "json").json["position"] == 2
    assert anabranch("cursor", "list", log, "-o", "json").json == {"reader": 2}
    assert anabranch("cursor", "list", log).out.split()[-4:] == ["reader", "2", "1", "stay"]
    anabranch("cursor", "set", log, "reader", "9", code=Exit.REFUSED)
    anabranch("cursor", "delete", log, "reader")
    assert "none of this name" in anabranch("cursor", "get", log, "reader", code=Exit.REFUSED).err


def test_cursors_follow_a_promoted_fork_or_end_with_it(anabranch: Command, log: str) -> None:
    anabranch("log", "create", log)
    anabranch("fork", log, "tried", "--promotable")
    fork = f"{log}--tried"
    anabranch("append", fork, "a", "b")
    anabranch("cursor", "set", fork, "reader", "2")
    anabranch("cursor", "set", fork, "draft", "2", "--on-promote", "stay")
    assert [line.split() for line in anabranch("cursor", "list", fork).out.splitlines()[1:]] == [
        ["draft", "2", "0", "stay"],
        ["reader", "2", "0", "follow"],
    ]
    assert "cursors reader followed" in anabranch("promote", fork).out
    assert anabranch("cursor", "list", log, "-o", "json").json == {"reader": 2}


def test_a_quota_is_set_part_by_part_and_holds(anabranch: Command, log: str) -> None:
    anabranch("log", "create", log)
    assert "no quota" in anabranch("log", "quota", log).out
    rates = ("--append-bytes", "1MiB/s", "--read-bytes", "2.5KiB", "--burst", "500ms")
    assert anabranch("log", "quota", log, *rates, "-o", "json").json == {
        "append_bytes_per_s": 1 << 20,
        "append_records_per_s": None,
        "read_bytes_per_s": 2_560,
        "burst_ms": 500,
    }
    changed = ("--append-bytes", "1/s", "--append-records", "500", "--read-bytes", "none")
    anabranch("log", "quota", log, *changed)
    told = "appends 1 B/s, appends 500 records/s, bursts of 500 ms"
    assert anabranch("log", "quota", log).out.strip() == f"{log}: {told}"
    assert told in anabranch("log", "show", log).out
    anabranch("append", log, "the broker learns of it")
    anabranch("append", log, stdin=bytes(100_000))
    anabranch("append", log, "late", "--timeout", "3s", code=Exit.BLOCKED)
    assert anabranch("log", "show", log, "-o", "json").json["tail"] == 2
    for rate in ("0", "-1", "much", "1 KB/s"):
        anabranch("log", "quota", log, "--append-bytes", rate, code=Exit.USAGE)
    anabranch("log", "quota", log, "--burst", "2h", code=Exit.REFUSED)


def test_bench_measures_and_leaves_nothing(
    anabranch: Command, server: Server, tmp_path: Path
) -> None:
    plot = tmp_path / "latencies.png"
    measured = anabranch(
        "bench", "--seconds", "200ms", "--count", "2000", "--plot", str(plot), "-o", "json"
    ).json
    assert [each["name"] for each in measured] == [
        "single",
        "concurrent",
        "pipelined",
        "batched",
        "read",
        "fork",
    ]
    for each in measured:
        assert each["operations"] > 0
        assert 0 < each["p50_ms"] <= each["p99_ms"] <= each["p100_ms"]
    assert plot.read_bytes().startswith(b"\x89PNG")
    table = anabranch("bench", "--seconds", "50ms", "--only", "fork").out
    assert "P99" in table
    assert anabranch("log", "list", "bench-", "-o", "json").lines == []


def test_an_interrupted_bench_leaves_nothing(anabranch: Command, server: Server) -> None:
    with subprocess.Popen(
        [*ANABRANCH, "bench", "--seconds", "10m", "--count", "1000000000"],
        env=server.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as measuring:
        while not anabranch("log", "list", "bench-", "-o", "json").lines:
            assert measuring.poll() is None
        measuring.send_signal(signal.SIGINT)
        try:
            assert measuring.communicate(timeout=A_MOMENT_S)[0].strip() == b""
        finally:
            measuring.kill()
    assert measuring.returncode == Exit.INTERRUPTED
    assert anabranch("log", "list", "bench-", "-o", "json").lines == []


def test_names_of_logs_are_completed(anabranch: Command, server: Server, log: str) -> None:
    anabranch("log", "create", log)
    asked = {"_ANABRANCH_COMPLETE": "bash_complete", "COMP_WORDS": f"anabranch read {log[:-1]}"}
    environment = {**server.environment, **asked, "COMP_CWORD": "2"}
    said = subprocess.run(ANABRANCH, env=environment, capture_output=True, check=True, text=True)
    assert said.stdout.split() == [f"plain,{log}"]


def test_following_sees_what_comes_until_ctrl_c(
    anabranch: Command, server: Server, log: str
) -> None:
    anabranch("log", "create", log)
    anabranch("append", log, "before")
    with subprocess.Popen(
        [*ANABRANCH, "tail", log, "-f", "--format", "raw"],
        env=server.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as following:
        assert following.stdout is not None
        assert following.stderr is not None
        assert following.stdout.readline() == b"before\n"
        anabranch("append", log, "after")
        assert following.stdout.readline() == b"after\n"
        following.send_signal(signal.SIGINT)
        assert following.stdout.read() == b""
        assert following.stderr.read().strip() == b""
    assert following.returncode == Exit.INTERRUPTED


def test_following_speculatively_sees_the_decision(
    anabranch: Command, server: Server, log: str
) -> None:
    anabranch("log", "create", log)
    anabranch("fork", log, "plan", "--promotable")
    anabranch("append", f"{log}--plan", "planned")
    anabranch("append", log, "held")
    with subprocess.Popen(
        [*ANABRANCH, "tail", log, "-f", "--speculative", "-o", "json"],
        env=server.environment,
        stdout=subprocess.PIPE,
    ) as following:
        assert following.stdout is not None
        events = (json.loads(line) for line in following.stdout)
        first = next(events)
        assert (first["event"], first["value"], first["speculative"]) == ("deliver", "held", True)
        anabranch("promote", f"{log}--plan")
        assert next(events) == {"event": "fail", "since": 0}
        told = [next(events), next(events)]
        assert [(each["value"], each["speculative"]) for each in told] == [
            ("planned", False),
            ("held", False),
        ]
        following.send_signal(signal.SIGINT)
        following.wait(A_MOMENT_S)


def test_a_reader_that_goes_away_ends_a_read_quietly(
    anabranch: Command, server: Server, log: str
) -> None:
    anabranch("log", "create", log)
    anabranch("append", log, "--lines", stdin=b"a line that fills the pipe\n" * 50_000)
    with subprocess.Popen(
        [*ANABRANCH, "read", log],
        env=server.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as reading:
        assert reading.stdout is not None
        assert reading.stderr is not None
        reading.stdout.readline()
        reading.stdout.close()
        assert reading.stderr.read() == b""
    assert reading.returncode == Exit.UNREAD


def test_a_wrong_token_is_refused(tmp_path: Path, anabranch: Command) -> None:
    with Server.started(tmp_path, "--token", "secret") as guarded:
        said = anabranch("log", "list", "--url", guarded.url, code=Exit.REFUSED)
        assert "ANABRANCH_TOKEN" in said.err
        anabranch("log", "list", "--url", guarded.url, "--token", "secret")
        anabranch("log", "list", "--url", guarded.url.replace("://", "://secret@"))


def test_up_says_why_it_can_not_start(server: Server, tmp_path: Path) -> None:
    taken = server.url.rpartition(":")[2]
    arguments = ["up", "--data", str(tmp_path), "--no-http", "--port", taken]
    said = subprocess.run(
        [*ANABRANCH, *arguments],
        env=server.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == Exit.BLOCKED
    assert "choose another port" in said.stderr
    assert "Traceback" not in said.stderr
    open_to_all = subprocess.run(
        [*ANABRANCH, "up", "--memory", "--host", "0.0.0.0"],
        env=server.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert open_to_all.returncode == Exit.REFUSED
    assert "without a token" in open_to_all.stderr


def test_the_environment_of_a_test_is_no_other_servers() -> None:
    assert not any(name.startswith("ANABRANCH_") for name in os.environ)


def test_a_command_is_repeated_under_its_request_id(anabranch: Command) -> None:
    anabranch("log", "create", "told")
    append = ("append", "told", "--request-id", "nightly 7")
    first = anabranch(*append, "--lines", stdin=b"a\nb\n").out
    assert "told at 0..1" in first
    assert anabranch(*append, "--lines", stdin=b"a\nb\n").out == first
    reused = anabranch(*append, "a", "c", code=Exit.REFUSED).err
    assert "the --request-id was used before" in reused
    fork = ("append", "told--f", "c", "--request-id", "k")
    anabranch("fork", "told", "f", "--promotable")
    done = anabranch(*fork).out
    anabranch("promote", "told--f")
    assert anabranch(*fork).out == done
    assert anabranch("read", "told", "--format", "raw").out == "a\nb\nc\n"
