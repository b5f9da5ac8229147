"""Nodes of a lazy front, recovered from what their journals held."""

import io
from dataclasses import fields

import pytest

from anabranch.apps.lazy.machines import (
    CONTROLLER,
    SEQUENCER,
    recover_controller,
    recover_sequencer,
)
from anabranch.apps.node_machine import NodeMachine
from anabranch.core.bolt.front.config import FrontControllerConfig, FrontSequencerConfig
from anabranch.core.bolt.front.controller import FrontController
from anabranch.core.bolt.front.sequencer import FrontSequencer
from anabranch.core.limits import Limits
from anabranch.core.types import LogId
from anabranch.shell.journal.memory import MemoryJournal
from anabranch.shell.telemetry.log import Log
from anabranch.shell.telemetry.metric_help import HELP

NODE, CONTROLLING = "/1/sequencer-0", "/1/controller-0"


def recovered(kind: str) -> NodeMachine:
    log = Log(lambda: 0, stream=io.StringIO())
    if kind == SEQUENCER:
        config = FrontSequencerConfig(node=NODE, log=LogId(1), controllers=(CONTROLLING,))
        sequencer = FrontSequencer(config, Limits())
        return recover_sequencer(sequencer, MemoryJournal(), log)
    config = FrontControllerConfig(node=CONTROLLING, log=LogId(1), sequencers=(NODE,))
    return recover_controller(FrontController(config, Limits()), MemoryJournal(), log)


@pytest.mark.parametrize("kind", [SEQUENCER, CONTROLLER])
def test_a_new_node_waits_for_its_log(kind: str) -> None:
    found = recovered(kind)
    assert found.kind == kind
    assert found.role() in ("member", "follower")
    assert found.obstacle() is not None


@pytest.mark.parametrize("kind", [SEQUENCER, CONTROLLER])
def test_every_metric_of_a_node_has_its_help(kind: str) -> None:
    found = recovered(kind)
    counted = {f"anabranch_{kind}_{field.name}_total" for field in fields(found.counters)}
    gauges = found.gauges()
    shown = {f"anabranch_{kind}_{name}" for name in gauges.__slots__}
    assert counted | shown == {name for name in HELP if name.startswith(f"anabranch_{kind}_")}
