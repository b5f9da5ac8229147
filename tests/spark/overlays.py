"""Packages that lie in front of the environment's own: another Spark, or what Spark Connect takes.

A folder for each lock of `requirements/` is filled once, and kept where servers are kept: the next
run, and other trees with the same lock, find it there.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from anabranch_spark.companions.fetch import cache

ROOT = Path(__file__).parents[2]
SECOND, CONNECT = "spark-second", "spark-connect"
INSTALL_S = 1_200.0


def overlay(name: str) -> Path:
    """The folder of one lock's packages. Skips the test if they can't be had here."""
    lock = ROOT / "requirements" / f"{name}.txt"
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
    version = f"py{sys.version_info.major}.{sys.version_info.minor}"
    folder = cache() / f"{name}-{version}-{digest}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as alone:
        fcntl.flock(alone, fcntl.LOCK_EX)
        if not folder.exists():
            _install(lock, folder)
    return folder


def _install(lock: Path, folder: Path) -> None:
    """It gets its name when it is whole."""
    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
    try:
        done = subprocess.run(
            [*command, "--target", str(part), "--requirement", str(lock)],
            capture_output=True,
            text=True,
            check=False,
            timeout=INSTALL_S,
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"the packages of {lock.name} took over {INSTALL_S:.0f} s to install")
    if done.returncode:
        last = " / ".join(done.stderr.strip().splitlines()[-2:])
        pytest.skip(f"the packages of {lock.name} can't be had here: {last}")
    part.rename(folder)


def environment(overlays: Sequence[Path], **more: str) -> dict[str, str]:
    """Of a process that has these packages, and whose Spark gives them to its Python workers."""
    paths = [*map(str, overlays), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "PYSPARK_PYTHON": sys.executable,
        **more,
    }
