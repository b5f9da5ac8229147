"""What every test shares: how hard Hypothesis looks, and where the repository is."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]

# For `benchmarks`; last, so that a folder of ours never hides a module of the standard library.
sys.path.append(str(ROOT))

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
