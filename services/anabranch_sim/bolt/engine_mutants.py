"""Ways to get the catalogue of other engines' logs wrong, one at least for each rule that
`engine_logs` holds clients' answers to.
"""

# Breaking what others keep to themselves is the purpose here.
# pyright: reportPrivateUsage=false

from typing import Any

from msgspec.structs import replace

from anabranch.core.bolt.logs.forest import Forest
from anabranch.core.bolt.protocol.commands import CreateLog, DeleteLog, Done
from anabranch.core.bolt.state import answers, catalogue, state
from anabranch.core.bolt.state.replica import Replica
from anabranch_sim.world.mutants import Function, Mutant, returning


def _as_if_nobody_had_one(original: Function) -> Function:
    """An owner that declares its log again is given another, of another name."""

    def create(replica: Replica, command: CreateLog) -> Any:
        known = replica.forest.owned.get(command.owner) if command.engine else None
        if known is None:
            return original(replica, command)
        made = original(replica, replace(command, owner=""))
        replica.forest.logs[made.id].owner = command.owner
        return made

    return create


def _not_kept(original: Function) -> Function:
    """The next command no longer finds it."""

    def create(replica: Replica, command: CreateLog) -> Any:
        made = original(replica, command)
        log = replica.forest.logs[made.id]
        if log.settings is not None and log.settings.replicas == 1:
            replica.forest.remove(log)
        return made

    return create


def _not_done(original: Function) -> Function:
    def delete(replica: Replica, command: DeleteLog) -> Any:
        log = replica.forest.logs.get(command.log)
        return Done() if log is not None and log.engine else original(replica, command)

    return delete


def _in_words_alone(_: Function) -> Function:
    def replaced(replica: Replica, log: Any, settings: Any) -> Any:
        return replace(answers.describe(replica, log), settings=settings)

    return replaced


def _whoever_serves_it(original: Function) -> Function:
    """Reads find the log, as if it were an empty one of Bolt's."""

    def find_own(self: Forest, asked: Any, what: str) -> Any:
        return self.find(asked) if what == "read" else original(self, asked, what)

    return find_own


ENGINE_MUTANTS = [
    Mutant("an owner is given a second log", state._DO, CreateLog, _as_if_nobody_had_one),
    Mutant("a declared log is not kept", state._DO, CreateLog, _not_kept),
    Mutant("another engine's log outlives its deletion", state._DO, DeleteLog, _not_done),
    Mutant("a log of another engine is made as Bolt's", catalogue, "chosen", returning(("", None))),
    Mutant("settings are replaced in words alone", catalogue, "_replaced", _in_words_alone),
    Mutant("Bolt reads whatever log it finds", Forest, "find_own", _whoever_serves_it),
]
