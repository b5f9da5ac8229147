"""The benchmarks run, say what they found in the agreed form, and judge their bars rightly."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from benchmarks.__main__ import ALL, CLUSTER, OPERATOR, SPARK
from benchmarks.peers.kafka import server as kafka
from benchmarks.report import Result, Row, row, versus
from benchmarks.timing import interleaved, percentile
from tests.kubernetes.control_plane import API_SERVER
from tests.kubernetes.fixtures import needs as needs_programs
from tests.servers import needs

from anabranch.apps.processes.binaries import ETCD, VERSITYGW
from anabranch.core.errors import Unavailable

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "benchmarks" / "results"
SERVERS = {"s3-client": (VERSITYGW,)} | dict.fromkeys(CLUSTER, (ETCD, VERSITYGW))
"""What a benchmark starts that isn't ours."""
BESIDE_KAFKA = frozenset(
    ["isolation", "promote-cluster", "broker-throughput", "erwin-kafka", "spark-kafka"]
)
BAR = re.compile(r"[<>]= [0-9.,]+(x| \S+)")
SVG, PNG = b"<?xml", b"\x89PNG"


def read(path: Path) -> Result:
    return msgspec.json.decode(path.read_bytes(), type=Result)


def check(name: str, folder: Path) -> Result:
    """A result and its picture, as they must lie there."""
    result = read(folder / f"{name}.json")
    assert result.name == name
    assert result.rows
    for each in result.rows:
        assert (each.bar is None) == (each.holds is None), each.what
        assert (each.against is None) == (each.ratio is None), each.what
        assert each.bar is None or BAR.fullmatch(each.bar), each.bar
    assert (folder / f"{name}.svg").read_bytes().startswith(SVG)
    assert (folder / f"{name}.png").read_bytes().startswith(PNG)
    return result


def needs_kafka() -> None:
    try:
        kafka.find()
    except Unavailable as refused:
        pytest.skip(refused.message)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ALL)
def test_a_benchmark_runs_small_and_writes_its_result(name: str, tmp_path: Path) -> None:
    needs(*SERVERS.get(name, ()))
    if name in BESIDE_KAFKA:
        needs_kafka()
    if name in SPARK and shutil.which("java") is None:
        pytest.skip("no Java on this machine: Spark needs 17 or 21")
    if name in OPERATOR:
        needs_programs(*API_SERVER)
    subprocess.run(
        [sys.executable, "-m", "benchmarks", name, "--smoke", "--out", str(tmp_path)],
        cwd=ROOT,
        check=True,
        timeout=280,
        stdout=subprocess.DEVNULL,
    )
    check(name, tmp_path)


def test_every_benchmark_has_a_committed_result_and_no_result_lacks_its_benchmark() -> None:
    for name in ALL:
        check(name, RESULTS)
    assert {path.stem for path in RESULTS.glob("*.json")} == set(ALL)


def test_a_name_that_is_none_is_refused_with_those_that_are() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "forks"], cwd=ROOT, capture_output=True, check=False
    )
    assert done.returncode == 2
    assert b"there is no benchmark forks" in done.stderr
    assert b"appends-with-forks" in done.stderr


@pytest.mark.parametrize(("rounds", "holds"), [([1, 20, 90], True), ([1, 21, 90], False)])
def test_a_bar_is_held_by_the_median(rounds: list[float], holds: bool) -> None:
    found = row("a fork", rounds, "us", at_most=20)
    assert found == Row(
        what="a fork",
        value=rounds[1],
        unit="us",
        bar="<= 20 us",
        holds=holds,
        spread=(rounds[0], rounds[2]),
    )


def test_a_ratio_is_taken_round_by_round() -> None:
    found = versus("deep", [1, 30, 4], "us", "a root's", [1, 10, 2], at_most=1.5)
    assert (found.ratio, found.holds, found.spread) == (2, False, (1, 3))
    assert versus("deep", 2.0, "us", "a root's", 1.0, at_least=2).holds


def test_a_percentile_is_one_of_the_values() -> None:
    assert [percentile([1, 2, 3, 4], of) for of in (0, 50, 99, 100)] == [1, 3, 4, 4]


def test_rounds_are_interleaved_there_and_back() -> None:
    seen: list[str] = []

    def work(name: str) -> float:
        seen.append(name)
        return len(seen)

    found = interleaved(2, {"a": lambda: work("a"), "b": lambda: work("b")})
    assert seen == ["a", "b", "b", "a"]
    assert found == {"a": [1, 4], "b": [2, 3]}
