"""Who declares a log: an owner leads to the one log that it has, or to what became of it.

Whoever declares a log may ask for it again at any time, and whether it was made already it needn't
know: what is asked for under an owner is made once, however long ago. A request id is remembered
for an hour; an owner with its log, and with its grave.
"""

from anabranch.core.bolt.protocol.commands import Adopt, Description
from anabranch.core.bolt.state import answers
from anabranch.core.bolt.state.replica import Replica
from anabranch.core.errors import BadRequest, OwnedByAnother, OwnsAnother


def known(replica: Replica, owner: str) -> Description | None:
    """The log that this owner has already; refuses if it had one that is no more."""
    forest = replica.forest
    log = forest.owned.get(owner)
    if log is not None:
        assert log.owner == owner, "an owner leads to its log"
        return answers.describe(replica, log)
    grave = forest.graves_by_owner.get(owner)
    if grave is not None:
        error = forest.graves[grave].refusal.error()
        # Names are reused, and a refusal may be about the parent: the facts say whose log this was.
        error.facts = {**error.facts, "id": grave, "owner": owner}
        raise error
    return None


def check(replica: Replica, name: str, owner: str) -> None:
    chars_max = replica.limits.owner_chars_max
    if len(owner) > chars_max:
        raise BadRequest(name, f"an owner may have {chars_max} characters (owner_chars_max)")


def adopt(replica: Replica, command: Adopt) -> Description:
    """What a log that is no more left to this owner is forgotten: it has another now."""
    forest, owner = replica.forest, command.owner
    log = forest.find(command.log)
    check(replica, log.name, owner)
    if owner and log.owner not in ("", owner):
        raise OwnedByAnother(log.name, log.owner)
    other = forest.owned.get(owner, log)
    if other is not log:
        raise OwnsAnother(owner, other.name)
    forest.give(log, owner)
    assert log.owner == owner
    return answers.describe(replica, log)
