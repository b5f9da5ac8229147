"""Wall clocks that are stepped under running processes, or were wrong from the beginning."""

import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.integration.faults.load import Load
from tests.integration.faults.world import World
from tests.integration.pods.crew import start

from anabranch.apps.processes.ports import free_ports
from anabranch.cli.failure import Exit
from anabranch.core.types import MS

STEP_MS = 5_000
STEPS, STEPS_OF_A_NIGHT = 4, 12
HOUR_MS = 3_600_000


class Clocks:
    """The wall clock of every process, by name; those that only count run on."""

    def __init__(self, folder: Path) -> None:
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("cc isn't installed, and a clock of its own has to be compiled")
        self._folder = folder
        self._library = folder / "wall_clock.so"
        source = Path(__file__).with_name("wall_clock.c")
        flags = ["-O1", "-shared", "-fPIC", "-o", str(self._library)]
        subprocess.run([compiler, *flags, str(source), "-ldl"], check=True)

    def environment(self, name: str) -> Mapping[str, str]:
        file = self._file(name)
        if not file.exists():
            self.set(name, 0)
        return {"LD_PRELOAD": str(self._library), "WALL_CLOCK_FILE": str(file)}

    def set(self, name: str, ahead_ms: int) -> None:
        """At once, also under a process that runs."""
        file = self._file(name)
        with file.open("r+b" if file.exists() else "wb", buffering=0) as opened:
            opened.write(struct.pack("=q", ahead_ms * MS))

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.clock"


@pytest.fixture
def clocks(tmp_path: Path) -> Clocks:
    return Clocks(tmp_path)


@pytest.mark.parametrize(
    "steps", [STEPS, pytest.param(STEPS_OF_A_NIGHT, marks=pytest.mark.nightly)]
)
def test_a_clock_may_step_under_anybody(
    tmp_path: Path, clocks: Clocks, seed: int, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also under who leads, and under who starts with it: it is wrong by less than a minute."""
    # Of a fork's time to live: a leader that starts anew takes the clock as it is.
    monkeypatch.setenv("CLOCK_ERROR_MS", str(2 * STEP_MS))
    with (
        World(tmp_path, members=2, environments=clocks.environment) as world,
        Load(world, seed, tmp_path) as load,
    ):
        for _ in range(steps):
            pod = load.rng.choice([world.leader, *world.pods])
            clocks.set(pod.name, load.rng.choice((-STEP_MS, 0, STEP_MS)))
            load.go_on()
            if load.rng.random() < 0.3:
                pod.kill()
                load.go_on()
                start([pod])
        load.check(appends_min=10 * steps)


@pytest.mark.parametrize("off_ms", [HOUR_MS, -HOUR_MS])
def test_a_clock_that_is_an_hour_off_is_told_at_the_start(
    tmp_path: Path, clocks: Clocks, off_ms: int
) -> None:
    with World(tmp_path, members=1, brokers=0, environments=clocks.environment) as world:
        clocks.set("late", off_ms)
        ports = free_ports(2)
        for pod in (
            world.member("late", ports[0]),
            world.broker("late", ports[1], {"metadata-0": world.members[0].address}),
        ):
            pod.launch()
            try:
                assert pod.ended() in {Exit.REFUSED, Exit.BLOCKED}
            finally:
                pod.kill()
            said = pod.said.splitlines()[-1]
            assert said.startswith("error: ")
            assert "clock" in said, said
