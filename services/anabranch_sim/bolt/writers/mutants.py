"""Ways to get writer marks wrong."""

# Breaking what others keep to themselves is the purpose here.
# pyright: reportPrivateUsage=false

from typing import Any

from anabranch.core.bolt.logs import writers
from anabranch.core.bolt.logs.forest import Log
from anabranch.core.bolt.protocol.marks import CompleteVersion, WriterMark
from anabranch.core.bolt.state import state
from anabranch.core.bolt.state.replica import Replica
from anabranch_sim.world.mutants import Function, Mutant


def _begun_anew(original: Function) -> Function:
    """Whoever sends a part's first batch begins the part, as with a producer's new epoch."""

    def find(replica: Replica, log: Log, mark: WriterMark, digest: int) -> Any:
        marks = log.marks
        writer = marks.writers.get(mark.writer) if marks is not None else None
        parts = writer.open.get(mark.version, {}) if writer is not None else {}
        if marks is not None and not mark.batch and mark.part in parts:
            marks.batches -= parts.pop(mark.part).batches
            marks.parts -= 1
        return original(replica, log, mark, digest)

    return find


def _forgotten(original: Function) -> Function:
    def complete(replica: Replica, command: CompleteVersion) -> Any:
        done = original(replica, command)
        log = replica.forest.logs[command.log]
        if log.marks is not None:
            log.marks.drop(command.writer)
            log.marks = log.marks if log.marks.writers else None
        return done

    return complete


def _left_behind(original: Function) -> Function:
    def promote(replica: Replica, parent: Log, fork: Log) -> None:
        fork.marks = None

    return promote


def _own_only(original: Function) -> Function:
    def known_in(log: Log, name: str) -> Any:
        return (each for each in original(log, name) if each[0] is log)

    return known_in


WRITER_MUTANTS = [
    Mutant("each attempt begins its part anew", writers, "find", _begun_anew),
    Mutant("a complete version is forgotten", state._DO, CompleteVersion, _forgotten),
    Mutant("a promotion leaves the fork's marks behind", writers, "promote", _left_behind),
    Mutant("a fork knows its own writers only", writers, "_known_in", _own_only),
]
