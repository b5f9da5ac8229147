"""Nodes of a log as processes: whose journals they take."""

import io

import msgspec
import pytest

from anabranch.apps.erwin.machines import recover_sequencer
from anabranch.apps.pods.log_node import Resident, recovered
from anabranch.apps.pods.log_settings import LogEngine, SequencerSettings
from anabranch.core.consensus.disk import Joined
from anabranch.core.errors import BadRequest
from anabranch.core.erwin.orderer.config import SequencerConfig
from anabranch.core.erwin.orderer.sequencer import Sequencer
from anabranch.core.limits import Limits
from anabranch.shell.journal.memory import MemoryJournal
from anabranch.shell.telemetry.log import Log


def test_the_journal_of_another_engine_is_refused_with_a_sentence() -> None:
    journal, log = MemoryJournal(), Log(lambda: 0, stream=io.StringIO())
    journal.recover()
    journal.append([msgspec.msgpack.encode(Joined())])
    journal.close()
    sequencer = Sequencer(SequencerConfig(node="h:1", controllers=("h:1/controller",)), Limits())
    settings = SequencerSettings(cluster="audit", engine=LogEngine.ERWIN, data="/data/belfast")
    with pytest.raises(BadRequest, match=r"/data/belfast: its journal holds .* another engine"):
        recovered(settings, lambda: Resident(shown=recover_sequencer(sequencer, journal, log)))
