"""What the controllers of an Erwin log say of it, as tables."""

from collections.abc import Iterator

from msgspec.structs import asdict

from anabranch.cli.render.erwin import by_number, lost
from anabranch.core.sequencing.protocol.messages import LogSurvey, ShardPlace

OVERVIEW = (">VERSION", ">VIEW", "LEADER", "CONTROLLER", "CHANGING", "MODE", "DURABILITY")
NODES = ("SEQUENCER", "MEMBER", "STATE")
SHARDS = ("SHARD", "STATE", ">EPOCH", "PRIMARY", "REPLICAS")


def document(found: LogSurvey) -> dict[str, object]:
    """The same for programs: every field by its name."""
    members = [{"node": node, "life": life} for node, life in found.members]
    lost = [{"view": view, "found_at": at} for view, at in found.lost_views]
    shards = [asdict(each) for each in found.shards]
    return {**asdict(found), "members": members, "shards": shards, "lost_views": lost}


def overview(found: LogSurvey) -> Iterator[tuple[str, ...]]:
    yield (
        str(found.version),
        str(found.view),
        found.leader or "-",
        found.controller or "-",
        found.changing or "-",
        found.mode,
        found.durability,
    )


def nodes(found: LogSurvey) -> Iterator[tuple[str, ...]]:
    members = {node for node, _ in found.members}
    for node in dict.fromkeys((*found.sequencers, *members)):
        role = "leader" if node == found.leader else "yes" if node in members else "no"
        yield node, role, _state(found, node)


def shards(found: LogSurvey) -> Iterator[tuple[str, ...]]:
    """In the order of their names, as `status` shows them; they join in any order."""
    for shard in sorted(found.shards, key=lambda shard: by_number(shard.name)):
        replicas = (each if each in shard.replicas else f"{each} (not yet)" for each in shard.nodes)
        silent = [each for each in shard.nodes if each in found.silent]
        shown = ", ".join(replicas) + (f"; silent: {', '.join(silent)}" if silent else "")
        yield (
            shard.name,
            _shard_state(found, shard),
            str(shard.epoch),
            shard.primary or "-",
            shown,
        )


def notes(found: LogSurvey) -> Iterator[str]:
    if found.age_ms < 0:
        yield f"no controller has said anything to {found.node}"
    elif found.age_ms > 3_000:
        yield f"the controller was heard last {found.age_ms / 1_000:.0f} s ago: none may lead now"
    if found.obstacle:
        yield found.obstacle
    yield from lost(found.lost_views)


def _state(found: LogSurvey, node: str) -> str:
    if node in found.silent:
        return "silent"
    return "about to end" if node in found.leaving else "there"


def _shard_state(found: LogSurvey, shard: ShardPlace) -> str:
    if shard.removed:
        return "removed"
    if not shard.epoch:
        return "its replicas have yet to come"
    if shard.name in found.taking_over:
        return "gets another primary"
    return "open" if shard.open else "closed"
