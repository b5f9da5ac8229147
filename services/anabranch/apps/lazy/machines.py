"""A sequencer or a controller of a lazy front, and what its process shows of it."""

from anabranch.apps.lost_view_logger import LostViewLogger
from anabranch.apps.node_machine import NodeMachine
from anabranch.core.bolt.front.controller import FrontController
from anabranch.core.bolt.front.sequencer import FrontSequencer
from anabranch.ports import RecordJournal
from anabranch.shell.telemetry.log import Log

SEQUENCER, CONTROLLER = "lazy_sequencer", "lazy_controller"
"""Subjects of their metrics."""


def recover_sequencer(sequencer: FrontSequencer, journal: RecordJournal, log: Log) -> NodeMachine:
    node = sequencer.config.node
    replayed = journal.recover_into(sequencer.recover, sequencer.replayed)
    for repair in replayed.repairs:
        log.warning("repaired the journal", node=node, repair=repair)
    log.info("recovered", node=node, last=replayed.last)
    sequencer.replica.check_life()
    return NodeMachine(
        SEQUENCER,
        sequencer,
        lambda: "leader" if sequencer.replica.leads else "member",
        lambda: sequencer.obstacle,
        sequencer.counters,
        lambda: FrontSequencerGauges(sequencer),
    )


def recover_controller(
    controller: FrontController, journal: RecordJournal, log: Log
) -> NodeMachine:
    """Its log keeps what it decides: its own journal stays empty."""
    journal.recover_into(_nothing, _nothing)
    return shown_controller(controller, log)


def shown_controller(controller: FrontController, log: Log) -> NodeMachine:
    def leads() -> bool:
        return controller.views is not None

    return NodeMachine(
        CONTROLLER,
        LostViewLogger(controller, leads, log),
        lambda: "leader" if leads() else "follower",
        lambda: controller.obstacle,
        controller.counters,
        lambda: FrontControllerGauges(controller),
    )


def _nothing(*_: object) -> None:
    """An empty journal has no snapshot and no entries."""


class FrontSequencerGauges:
    """Of one sequencer of a front."""

    __slots__ = (
        "committing",
        "leading",
        "ordered",
        "ring_bytes",
        "ring_bytes_free",
        "ring_lasts_ms",
        "ring_records",
        "stable",
        "tail",
        "view",
        "waiting_bytes",
    )

    def __init__(self, sequencer: FrontSequencer) -> None:
        replica = sequencer.replica
        self.committing = len(sequencer.committing.batches) if sequencer.committing else 0
        self.leading = int(replica.leads)
        self.ordered = replica.ordered
        self.ring_bytes = replica.ring.bytes
        self.ring_bytes_free = sequencer.ring_bytes_free
        self.ring_lasts_ms = sequencer.ring_lasts_ms
        self.ring_records = replica.ring.records
        self.stable = replica.stable
        self.tail = replica.tail
        self.view = replica.view.number if replica.view is not None else 0
        self.waiting_bytes = replica.waiting_bytes


class FrontControllerGauges:
    """Of one controller of a front."""

    __slots__ = ("leading", "lost_views", "members", "silent", "view")

    def __init__(self, controller: FrontController) -> None:
        configuration = controller.configuration
        view = configuration.view
        self.leading = int(controller.views is not None)
        self.lost_views = len(configuration.lost_views)
        self.members = len(view.members) if view is not None else 0
        self.silent = len(controller.silent())
        self.view = view.number if view is not None else 0
