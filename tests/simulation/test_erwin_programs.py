"""The real client of an Erwin log in simulated deployments: what it tells programs is so."""

import pytest
from msgspec.structs import replace
from tests.simulation.erwin_programs import Programs
from tests.simulation.lazy_history import History, Try, faults_of

from anabranch_sim.erwin.options import Options
from anabranch_sim.world.simulation import Simulation

NIGHT = [pytest.param(seed, marks=pytest.mark.nightly) for seed in range(2, 60)]


@pytest.mark.parametrize("seed", [0, 1, *NIGHT])
def test_what_programs_are_told_of_their_appends_is_so(seed: int) -> None:
    options = Options.of(seed)
    traits = tuple(trait for trait in options.traits if trait != "trims")
    faults = tuple(fault for fault in options.faults if fault not in ("blackouts", "wipes"))
    run = Programs(replace(options, fsync=True, traits=traits, faults=faults))
    report = Simulation(run).run()
    assert report.violations == [], options
    assert run.history.log


def test_every_broken_promise_is_found() -> None:
    first = Try([b"a", b"b"], 1, returned=2, acknowledged=True)
    second = Try([b"c"], 3, returned=4, acknowledged=True)
    refused = Try([b"d"], 5, returned=6, refused="no room")
    tries, log = [first, second, refused], dict(enumerate((b"a", b"b", b"c")))
    assert faults_of(History(tries, [(second, 2)], [(5, 6, 3)], {**log})) == []
    broken = [
        History(tries, [(second, 1)], [], {**log}),
        History(tries, [], [(5, 6, 2)], {**log}),
        History(tries, [], [(5, 6, 9)], {**log}),
        History(tries, [], [], {**log, 3: b"d"}),
        History(tries, [], [], {**log, 3: b"a"}),
        History(tries, [], [], {**log, 3: b"x"}),
        History(tries, [], [], {0: b"a", 1: b"b", 2: None}),
        History(tries, [], [], {0: b"c", 1: b"a", 2: b"b"}),
        History(tries, [], [], {0: b"a", 1: b"c", 2: b"b"}),
        History(tries, [], [], {0: b"a", 1: b"b", 3: b"c"}),
    ]
    assert all(faults_of(history) for history in broken)
