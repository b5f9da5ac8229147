"""What a request to a shard may say, and what letters between nodes may say, whoever wrote them:
checked before anything is done with them.
"""

from anabranch.core.errors import BadRequest
from anabranch.core.erwin.protocol.letters import Configuration, Push, ShardSetup
from anabranch.core.erwin.protocol.messages import Data, Hello, Read, Subscribe, ToShard
from anabranch.core.erwin.protocol.rows import Mode
from anabranch.core.producers import SEQUENCE_SPACE
from anabranch.core.sequencing.protocol.messages import Locate
from anabranch.core.wire.numbers import check_position, check_shard
from anabranch.core.wire.session import Cancel, Credit


def check(message: ToShard) -> None:
    """Raises BadRequest, which names the part."""
    match message:
        case Read(shard=shard, start=start, bytes_max=bytes_max, records_max=records_max):
            check_shard(shard)
            check_position("a read's start", start)
            _check_amount("a read's bytes_max", bytes_max)
            _check_amount("a read's records_max", records_max)
        case Subscribe(shard=shard, start=start):
            check_shard(shard)
            check_position("a subscription's start", start)
        case Data(lowest=lowest):
            if not 0 <= lowest < SEQUENCE_SPACE:
                reason = f"{lowest} isn't from 0 up to {SEQUENCE_SPACE - 1}"
                raise BadRequest("an append's lowest sequence", reason)
        case Hello() | Locate() | Credit() | Cancel():
            """Their types bound them."""


def fault_in(configuration: Configuration) -> str | None:
    """Why no controller can have decided it."""
    if configuration.version < 1:
        return "configurations are numbered from 1"
    view = configuration.view
    if view is not None and view.leader not in view.nodes:
        return "the leader of its view isn't a member"
    if any(not _is_sound(setup) for setup in configuration.shards):
        return "an epoch of a shard has a primary among its replicas, and the journal of each"
    return None


def _is_sound(setup: ShardSetup) -> bool:
    if not setup.epoch:
        return True
    return setup.primary in setup.replicas and len(setup.disks) in (0, len(setup.replicas))


def fault_in_push(push: Push, *, shard: int, mode: Mode) -> str | None:
    """Why no leader can have made it for the shard of this number."""
    if push.trimmed > push.stable:
        return "only what is stable is trimmed"
    if push.waits_ms and len(push.waits_ms) not in (1, len(push.rows)):
        return "each of its rows has a wait, or all have one"
    at = push.first
    own = 0
    for row in push.rows:
        if row.first != at:
            return "its rows leave a gap"
        at = row.end
        own += row.shard == shard
    if mode is Mode.M and own != len(push.batches):
        return "each of the shard's own rows has a batch"
    return None


def _check_amount(what: str, amount: int) -> None:
    if amount < 1:
        raise BadRequest(what, f"it is {amount}: ask for 1 at least")
