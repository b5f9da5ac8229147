"""Nodes of an Erwin log, recovered from what their journals held."""

import io
from dataclasses import fields
from typing import Any

import pytest

from anabranch.apps.erwin.machines import (
    CONTROLLER,
    SEQUENCER,
    SHARD,
    NodeMachine,
    recover_controller,
    recover_sequencer,
    recover_shard,
)
from anabranch.core.erwin.controller.config import ControllerConfig, ShardNodes
from anabranch.core.erwin.controller.controller import Controller
from anabranch.core.erwin.orderer.config import SequencerConfig
from anabranch.core.erwin.orderer.sequencer import Sequencer
from anabranch.core.erwin.shard.config import ErwinShardConfig
from anabranch.core.erwin.shard.shard import ErwinShard
from anabranch.core.limits import Limits
from anabranch.shell.journal.memory import MemoryJournal
from anabranch.shell.telemetry.log import Log
from anabranch.shell.telemetry.metric_help import HELP

CONTROLLERS = ("/1/controller-0",)


def recovered(kind: str, said: io.StringIO) -> NodeMachine:
    journal, log = MemoryJournal(), Log(lambda: 0, stream=said)
    if kind == SEQUENCER:
        config = SequencerConfig(node="/1/sequencer-0", controllers=CONTROLLERS)
        return recover_sequencer(Sequencer(config, Limits()), journal, log)
    if kind == SHARD:
        node = "/1/shard-0-0"
        setup = ErwinShardConfig(
            shard="shard-0", node=node, replicas=(node,), controllers=CONTROLLERS
        )
        return recover_shard(ErwinShard(setup, Limits()), journal, log)
    shards = (ShardNodes(name="shard-0", nodes=("/1/shard-0-0",)),)
    alone = ControllerConfig(node=CONTROLLERS[0], sequencers=("/1/sequencer-0",), shards=shards)
    return recover_controller(Controller(alone, Limits()), journal, log)


@pytest.mark.parametrize(
    ("kind", "role", "obstacle", "gauge"),
    [
        (SEQUENCER, "member", "no controller has told it the configuration yet", "leading"),
        (SHARD, "idle", "it waits for the log's controller", "primary"),
        (CONTROLLER, "follower", None, "leading"),
    ],
)
def test_a_new_node_waits_for_what_it_isnt_told_yet(
    kind: str, role: str, obstacle: str | None, gauge: str
) -> None:
    said = io.StringIO()
    found = recovered(kind, said)
    assert (found.kind, found.role(), found.obstacle()) == (kind, role, obstacle)
    assert getattr(found.gauges(), gauge) == 0
    assert "recovered" in said.getvalue()


@pytest.mark.parametrize("kind", [SEQUENCER, SHARD, CONTROLLER])
def test_all_that_is_shown_has_a_help_text(kind: str) -> None:
    found = recovered(kind, io.StringIO())
    counters: Any = found.counters
    names = {f"anabranch_{kind}_{each.name}_total" for each in fields(counters)}
    names |= {f"anabranch_{kind}_{each}" for each in found.gauges().__slots__}
    assert names == {name for name in HELP if name.startswith(f"anabranch_{kind}_")}
