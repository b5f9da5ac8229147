"""Sequencers and shard replicas, recovered from what their journals held."""

import io

from anabranch.apps.belfast.machines import (
    SEQUENCER,
    SHARD,
    NodeMachine,
    recover_sequencer,
    recover_shard,
)
from anabranch.core.belfast.ledger.rules import Rules
from anabranch.core.belfast.sequencer.sequencer import Sequencer
from anabranch.core.belfast.shard.config import ShardConfig
from anabranch.core.belfast.shard.shard import Shard
from anabranch.core.limits import Limits
from anabranch.shell.journal.memory import MemoryJournal
from anabranch.shell.telemetry.log import Log


def sequencer(journal: MemoryJournal, said: io.StringIO) -> NodeMachine:
    member = Sequencer("/1/sequencer-0", ("/1/sequencer-0",), Rules(), Limits())
    return recover_sequencer(member, journal, Log(lambda: 0, stream=said))


def test_a_new_sequencer_waits_for_a_leader() -> None:
    said = io.StringIO()
    found = sequencer(MemoryJournal(), said)
    assert (found.kind, found.role()) == (SEQUENCER, "follower")
    assert found.obstacle() == "no sequencer leads"
    assert found.gauges().leading == 0
    assert "recovered" in said.getvalue()


def test_a_new_replica_waits_to_be_admitted() -> None:
    config = ShardConfig(
        shard="shard-0",
        node="/1/shard-0-0",
        replicas=("/1/shard-0-0",),
        sequencers=("/1/sequencer-0",),
    )
    said = io.StringIO()
    found = recover_shard(Shard(config, Limits()), MemoryJournal(), Log(lambda: 0, stream=said))
    assert found.kind == SHARD
    assert found.obstacle() == "the sequencers haven't admitted its shard yet"
    assert found.gauges().primary == 0
    assert "recovered" in said.getvalue()
