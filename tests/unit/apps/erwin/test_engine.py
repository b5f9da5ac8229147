"""An Erwin log's nodes as one process runs them."""

from pathlib import Path

import pytest

from anabranch.apps.embedded.folders import Folders, LogFolder
from anabranch.apps.embedded.losses import losses
from anabranch.apps.erwin.engine import ERWIN_JOURNALS, EmbeddedErwin, LogNodes
from anabranch.core.bolt.protocol.commands import EngineSettings
from anabranch.core.bolt.state.catalogue import nodes
from anabranch.core.types import LogId
from anabranch.shell.journal.watermark import Watermark

AUDIT = LogFolder(LogId(7), 1_700_000_000_000, "audit", "erwin")
SETTINGS = EngineSettings(2, 2, 3, embedded=True, mode="m", durability="fsync")
NODES = (
    *(f"sequencer-{n}" for n in range(3)),
    *(f"shard-{s}-{r}" for s in range(2) for r in range(2)),
    "controller-0",
)


def test_a_logs_nodes_are_those_that_the_catalogue_counts() -> None:
    names = LogNodes.of(AUDIT, SETTINGS)
    found = [*names.sequencers, *(node for each in names.shards for node in each.nodes)]
    assert {*found, *names.controllers} == {f"/7/{node}" for node in NODES}
    assert len(found) + len(names.controllers) == nodes("erwin", SETTINGS)


def test_clients_find_all_nodes_but_the_controller() -> None:
    found = {node: protocol.name for protocol, node in EmbeddedErwin().addresses(AUDIT, SETTINGS)}
    assert found == {
        f"/7/{node}": "sequencing" if node.startswith("sequencer") else "erwin"
        for node in NODES[:-1]
    }


@pytest.mark.parametrize(
    ("gone", "refilled"),
    [
        ((), ()),
        (("sequencer-0", "sequencer-2"), ("sequencer-0", "sequencer-2")),
        (("sequencer-0", "sequencer-1", "sequencer-2"), ()),
        (("shard-0-1", "shard-1-0"), ("shard-0-1", "shard-1-0")),
        (("shard-1-0", "shard-1-1"), ()),
        (("controller-0", "sequencer-1"), ("sequencer-1",)),
    ],
)
def test_any_node_of_a_group_fills_the_others_and_nobody_the_controller(
    tmp_path: Path, gone: tuple[str, ...], refilled: tuple[str, ...]
) -> None:
    folders = Folders(str(tmp_path))
    folders.make(AUDIT)
    for node in NODES:
        folders.note(AUDIT, node).create(Watermark(9, lives=0))
        if node not in gone:
            journal = Path(folders.path(AUDIT, node))
            journal.mkdir()
            (journal / "0000000001.segment").touch()
    found = losses(folders, AUDIT, ERWIN_JOURNALS)
    assert found.refilled == refilled
    assert set(found.lost) == set(gone) - set(refilled)


def test_no_journal_may_go_back_to_what_it_was() -> None:
    for group in ("sequencer", "shard-0", "controller"):
        assert not ERWIN_JOURNALS.may_cut(group)
