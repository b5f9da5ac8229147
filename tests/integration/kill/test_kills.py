"""`kill -9` at any instant, under load: nothing acknowledged is lost, doubled, moved or halved."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.kill.campaign import Campaign

SEEDS = tuple(int(seed) for seed in os.environ.get("KILL_SEEDS", "1,2,3").split(","))
STRIKES = (
    "under load",
    "when it starts",
    "in a snapshot",
    "when it has recovered",
    "paused",
    "among garbage",
    "once it serves",
    "stopping",
    "under load",
    "under load",
    "in order",
    "in a snapshot",
    "paused",
)
A_FEW = ("under load", "in a snapshot", "when it starts")
"""For every change; all of them are for the night."""
KILLS_MIN = 17
"""Of each seed, so that all together are more than fifty."""
ACKNOWLEDGED_MIN = 300
IN_FLIGHT_MIN = 10
"""Kills that met calls on their way; the others met a server that didn't serve yet."""


def test_a_few_kills_cost_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    with Campaign(tmp_path, seed=1) as campaign:
        for strike in A_FEW:
            campaign.strike(strike)
        faults = campaign.finish()
    assert not faults, f"{campaign.settings}: {faults[:10]}"
    assert len(campaign.kills) >= len(A_FEW)
    assert campaign.acknowledged > 0


@pytest.mark.nightly
@pytest.mark.parametrize("seed", SEEDS)
def test_no_kill_costs_anything_that_was_acknowledged(
    tmp_path: Path, seed: int, record_property: Callable[[str, object], None]
) -> None:
    with Campaign(tmp_path, seed) as campaign:
        strikes = list(STRIKES)
        campaign.rng.shuffle(strikes)
        for strike in strikes:
            campaign.strike(strike)
        faults = campaign.finish()
    assert not faults, f"seed {seed}, {campaign.settings}: {faults[:10]}"
    busy = sum(campaign.in_flight(at) > 0 for at in campaign.kills)
    told = f"{len(campaign.kills)} kills, {busy} of them with calls in flight"
    record_property("acknowledged", campaign.acknowledged)
    record_property("told", told)
    assert len(campaign.kills) >= KILLS_MIN, told
    assert campaign.acknowledged >= ACKNOWLEDGED_MIN, "too little load to prove anything"
    assert busy >= IN_FLIGHT_MIN, told
