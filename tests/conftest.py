"""What every test shares: how hard Hypothesis looks, the order of tests, and the repository."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from anabranch.apps.processes.binaries import SERVERS, is_ready

ROOT = Path(__file__).resolve().parents[1]

# For `benchmarks`; last, so that a folder of ours never hides a module of the standard library.
sys.path.append(str(ROOT))

# Tests start hundreds of processes, which start twice as fast where each module is compiled only
# once: whoever keeps their shell from writing compiled modules doesn't mean these.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell starts background jobs with the interrupt ignored. Children inherit that, and then no test
# can interrupt them.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A change is judged by the same examples on every machine, however slow; the night looks further:
# `make test ARGS=--hypothesis-profile=night`.
settings.register_profile(
    "everyday",
    max_examples=50,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "night", max_examples=5_000, stateful_step_count=100, deadline=None, print_blob=True
)
settings.load_profile("everyday")

_SLOWEST_FIRST = (
    "tests/cluster",
    "tests/spark",
    "tests/operator",
    "tests/integration",
    "tests/simulation",
    "tests/charts",
    "tests/contract",
)
"""Folders in the order in which their tests start; the others come last."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start slow tests first, and keep the tests that share a module's fixture on one worker.

    While servers are still being built, start the tests that need none: the fast ones.
    """
    folders = _SLOWEST_FIRST if all(map(is_ready, SERVERS.values())) else _SLOWEST_FIRST[::-1]
    items.sort(key=lambda item: _rank(item.path, folders))
    for item in items:
        alone = item.get_closest_marker("xdist_group") is None  # xdist joins the names of several
        if item.config.pluginmanager.hasplugin("xdist") and alone and any(_modules_own(item)):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


@cache
def _rank(path: Path, folders: tuple[str, ...]) -> int:
    ranks = {ROOT / folder: rank for rank, folder in enumerate(folders)}
    fastest = len(folders) if folders is _SLOWEST_FIRST else -1
    return next((ranks[folder] for folder in path.parents if folder in ranks), fastest)


def _modules_own(item: pytest.Item) -> Iterator[bool]:
    """For each fixture of the test, whether it is set up once for the whole module."""
    if isinstance(item, pytest.Function):
        for definitions in item._fixtureinfo.name2fixturedefs.values():
            yield definitions[-1].scope == "module"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests were skipped for each reason: a missing program is named once."""
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", ())
        if isinstance(report.longrepr, tuple)
    )
    if reasons:
        terminalreporter.section("skipped tests by reason")
        for reason, count in reasons.most_common():
            terminalreporter.line(f"{count:5} {reason}")


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def tracked(root: Path) -> tuple[Path, ...]:
    """Every file that is or is about to be in the repository, relative to its root."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return tuple(Path(name) for name in listing.split("\0") if name and (root / name).is_file())
