"""The catalogue of logs: who declares a log, and which engine serves it.

An owner leads to the one log that it has, or to what became of that. Whoever declares a log may
ask for it again at any time and needn't know whether it was made already: what is asked for under
an owner is made once, however long ago. A request id is remembered for an hour; an owner as long
as its log, or the log's grave. An owner that changes its mind about its log's end is another string
and the same owner (`ENDING`): a request that was held up on its way, and comes in the former
spelling, makes no second log.

A log of another engine is a root without records of its own here. It is listed, described, adopted
and deleted like any other log; whatever else is asked of it through Bolt is refused with
`wrong-engine`.
"""

import re

from msgspec.structs import replace

from anabranch.core.bolt.logs import fronts
from anabranch.core.bolt.logs.forest import Forest, Log
from anabranch.core.bolt.logs.front import Front
from anabranch.core.bolt.protocol.commands import (
    BOLT,
    FRONT,
    Adopt,
    CreateLog,
    Description,
    EngineSettings,
    SetAppends,
    SetSettings,
    check_format,
)
from anabranch.core.bolt.state import answers
from anabranch.core.bolt.state.replica import Replica
from anabranch.core.errors import BadRequest, OwnedByAnother, OwnsAnother, TooMany
from anabranch.core.storage.black_box_address import BlackBoxAddress

ENGINES = ("belfast", "erwin")
"""Engines whose logs the catalogue keeps beside Bolt's own."""
ENGINES_FORMAT = {"belfast": 5, "erwin": 6}
"""From which format on the catalogue keeps their logs."""
ENDING = ".end"
"""An owner that ends so wants its log to end with itself. An owner may change its mind about that,
so it is the same owner with and without this suffix.
"""
ENDING_FORMAT = 6
"""From which format on an owner is the same with and without `ENDING`."""

MODES, DURABILITIES = ("m", "st"), ("fsync", "memory")
"""Of an Erwin log; the first one if nobody says otherwise."""
REPLICAS_APART = 2
SEQUENCERS_APART = {"belfast": 3, "erwin": 3, FRONT: 3}
"""Of a log whose nodes fail one by one, being processes of their own, if nobody says otherwise: one
of them can be lost. Belfast's sequencers agree by majority; Erwin's and a lazy front's all hold an
append, and a controller decides which of them take part, and the log goes on with two that are
left.
"""
CONTROLLERS = {"belfast": 0, "erwin": 1}
"""Machines of an embedded log beside its sequencers and replicas."""

_EMBEDDED = (
    "this service runs its nodes in one process, and they stay as they are: only where `anabranch "
    "up --processes` runs them can it get more shards"
)

_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}", re.ASCII)
"""Clients dial it and show it to people, so nothing else is kept."""
SHARDS_MAX, REPLICAS_MAX, SEQUENCERS_MAX = 1_000, 9, 9
ADDRESSES_MAX, ADDRESS_CHARS_MAX, CLUSTER_CHARS_MAX = 64, 300, 253


def known(replica: Replica, owner: str) -> Description | None:
    """The log that this owner has already; refuses if it had one that is no more."""
    forest, spellings = replica.forest, _spellings(replica, owner)
    for spelling in spellings:
        log = forest.owned.get(spelling)
        if log is not None:
            assert log.owner == spelling, "an owner leads to its log"
            return answers.describe(replica, log)
    for spelling in spellings:
        grave = forest.graves_by_owner.get(spelling)
        if grave is not None:
            error = forest.graves[grave].refusal.error()
            # Names are reused, and a refusal may be about the parent: say whose log this was.
            error.facts = {**error.facts, "id": grave, "owner": owner}
            raise error
    return None


def _spellings(replica: Replica, owner: str) -> tuple[str, ...]:
    """The owner as it is given, and as it may have been given before."""
    if not owner or replica.format < ENDING_FORMAT:
        return (owner,)
    plain = owner.removesuffix(ENDING)
    return (owner, owner + ENDING if owner == plain else plain)


def check_owner(replica: Replica, name: str, owner: str) -> None:
    chars_max = replica.limits.owner_chars_max
    if len(owner) > chars_max:
        raise BadRequest(name, f"an owner may have {chars_max} characters (owner_chars_max)")


def adopt(replica: Replica, command: Adopt) -> Description:
    """What a log that is no more left to this owner is forgotten: it has another now."""
    forest, owner = replica.forest, command.owner
    log = forest.find(command.log)
    check_owner(replica, log.name, owner)
    spellings = _spellings(replica, owner)
    if owner and log.owner not in ("", *spellings):
        raise OwnedByAnother(log.name, log.owner)
    for spelling in spellings:
        other = forest.owned.get(spelling, log)
        if other is not log:
            raise OwnsAnother(spelling, other.name)
    for spelling in spellings:
        forest.forget_former_log(spelling)
    forest.give(log, owner)
    assert log.owner == owner
    return answers.describe(replica, log)


def chosen(replica: Replica, command: CreateLog, name: str) -> tuple[str, EngineSettings | None]:
    """The engine and the settings of a log that is about to be made; "" and None for Bolt's own.

    Raises BadRequest if the catalogue can't keep such a log.
    """
    engine, settings = command.engine, command.settings
    if engine in ("", BOLT):
        if settings is not None:
            raise BadRequest(name, "a bolt log has no shards or sequencers: leave them out")
        return "", None
    if engine not in ENGINES:
        raise BadRequest(f"engine {engine!r}", f"known are {', '.join(sorted((BOLT, *ENGINES)))}")
    check_format(replica.format, ENGINES_FORMAT[engine], f"a log of engine {engine}")
    settings = _with_defaults(engine, settings or EngineSettings())
    _check(name, engine, settings)
    check_machines(replica, name, settings, nodes(engine, settings))
    return engine, settings


def declared_again(replica: Replica, known: Description, command: CreateLog) -> Description:
    """What a log's owner declares of it from now on."""
    settings, log = command.settings, replica.forest.logs[known.id]
    same_engine = log.engine != "" and log.engine == command.engine
    if not same_engine or settings is None or log.settings == settings:
        return known
    if settings.embedded or (log.settings is not None and log.settings.embedded):
        return known
    return _replaced(replica, log, settings)


def set_settings(replica: Replica, command: SetSettings) -> Description:
    log = replica.forest.find(command.log)
    if log.front is not None:
        return _place_front(replica, log, log.front, command.settings)
    if not log.engine:
        raise BadRequest(log.name, "it is a bolt log, which has no shards or sequencers")
    if log.settings is None or log.settings.embedded or command.settings.embedded:
        raise BadRequest(log.name, _EMBEDDED)
    return _replaced(replica, log, command.settings)


def set_appends(replica: Replica, command: SetAppends) -> Description:
    """Direct appends that aren't committed by now never will be; those that are keep their answer,
    however often they are repeated.
    """
    log = replica.forest.find_own(command.log, "lazy appends")
    check_format(replica.format, fronts.SWITCH_FORMAT, f"a lazy front of {log.name}")
    if log.promotable:
        reason = "a promotable fork's records become its parent's: its appends stay direct"
        raise BadRequest(log.name, reason)
    if command.front is None:
        fronts.end(replica, log)
        return answers.describe(replica, log)
    front = fronts.made(replica, command.front, log.name)
    known = log.front
    if known is not None and (known.ended or known.configuration.ending):
        reason = "it had a lazy front that ended, and can't have another one: fork it"
        raise BadRequest(log.name, reason)
    if known is None:
        check_front(replica, front, log.name)
        log.front, replica.forest.fronts[log.id] = front, log
    elif replace(known.settings, addresses=(), cluster="") != replace(
        front.settings, addresses=(), cluster=""
    ):
        reason = (
            f"its front has {known.settings.sequencers} sequencers of durability "
            f"{known.settings.durability}, and keeps them"
        )
        raise BadRequest(log.name, reason)
    return answers.describe(replica, log)


def _place_front(replica: Replica, log: Log, front: Front, settings: EngineSettings) -> Description:
    """Where the front's sequencers are. How many there are, and what they promise, stays."""
    known = front.settings
    if known.embedded or settings.embedded:
        raise BadRequest(log.name, _EMBEDDED)
    placed = replace(known, addresses=settings.addresses, cluster=settings.cluster)
    if replace(settings, durability=settings.durability or known.durability) != placed:
        raise BadRequest(log.name, "only addresses and cluster of a lazy front can be changed")
    _check_places(log.name, placed)
    front.settings = placed
    return answers.describe(replica, log)


def _with_defaults(engine: str, settings: EngineSettings) -> EngineSettings:
    if engine != "erwin":
        return settings
    mode, durability = settings.mode or MODES[0], settings.durability or DURABILITIES[0]
    return replace(settings, mode=mode, durability=durability)


def _replaced(replica: Replica, log: Log, settings: EngineSettings) -> Description:
    before = log.settings
    assert before is not None, "a log of another engine has settings"
    # How a log keeps what it acknowledges was promised when it was created.
    settings = replace(
        settings,
        mode=settings.mode or before.mode,
        durability=settings.durability or before.durability,
        black_box=settings.black_box or before.black_box,
    )
    _check(log.name, log.engine, settings)
    if (settings.mode, settings.durability) != (before.mode, before.durability):
        raise BadRequest(log.name, "its mode and durability stay as it was created with")
    if settings.black_box != before.black_box:
        raise BadRequest(log.name, "its records stay in the black box where they are")
    log.settings = settings
    return answers.describe(replica, log)


def _check(name: str, engine: str, settings: EngineSettings) -> None:
    _check_kind(name, engine, settings)
    bounds = {
        "shards": (settings.shards, SHARDS_MAX),
        "replicas": (settings.replicas, REPLICAS_MAX),
        "sequencers": (settings.sequencers, SEQUENCERS_MAX),
    }
    for what, (value, most) in bounds.items():
        if not 1 <= value <= most:
            raise BadRequest(name, f"it can have 1 to {most} {what}, not {value}")
    _check_places(name, settings)


def _check_places(name: str, settings: EngineSettings) -> None:
    if len(settings.addresses) > ADDRESSES_MAX:
        raise BadRequest(name, f"it can have {ADDRESSES_MAX} addresses at most")
    if any(not 0 < len(each) <= ADDRESS_CHARS_MAX for each in settings.addresses):
        raise BadRequest(name, f"an address has 1 to {ADDRESS_CHARS_MAX} characters")
    for address in settings.addresses:
        if not _ADDRESS.fullmatch(address):
            raise BadRequest(name, f"the address {address!r} isn't host:port")
    if len(settings.cluster) > CLUSTER_CHARS_MAX:
        raise BadRequest(name, f"a cluster's name has {CLUSTER_CHARS_MAX} characters at most")


def _check_kind(name: str, engine: str, settings: EngineSettings) -> None:
    if engine != "erwin":
        if settings.mode or settings.durability or settings.black_box:
            reason = "only an erwin log has a mode, a durability and a black box: leave them out"
            raise BadRequest(name, reason)
        return
    if settings.mode not in MODES:
        raise BadRequest(name, f"its mode is {' or '.join(MODES)}, not {settings.mode!r}")
    if settings.durability not in DURABILITIES:
        known, given = " or ".join(DURABILITIES), settings.durability
        raise BadRequest(name, f"its durability is {known}, not {given!r}")
    if settings.black_box:
        _check_black_box(name, settings)


def _check_black_box(name: str, settings: EngineSettings) -> None:
    BlackBoxAddress.of_log(settings.black_box)
    if settings.mode != "m":
        reason = "each append of mode st would wait for the black box: leave the mode at m"
        raise BadRequest(name, reason)
    if settings.replicas != 1:
        raise BadRequest(name, "the black box replicates: its shards have one replica each")


def check_front(replica: Replica, front: Front | None, name: str) -> None:
    if front is not None:
        _check_places(name, front.settings)
        check_machines(replica, name, front.settings, machines_of_front(front.settings))


def check_machines(replica: Replica, name: str, settings: EngineSettings, machines: int) -> None:
    """Every node of an embedded log, or of a front, is a machine with a journal of its own."""
    if not settings.embedded:
        return
    limit, there = replica.limits.embedded_nodes_max, _embedded_nodes(replica.forest)
    if there + machines > limit:
        what = (
            f"{name} takes {machines} sequencers and shard replicas in this process, where other "
            f"logs have {there} (`up --processes` runs each in its own, without a limit)"
        )
        raise TooMany(what, limit, "embedded_nodes_max")


def _embedded_nodes(forest: Forest) -> int:
    logs = sum(
        nodes(log.engine, log.settings)
        for log in forest.foreign.values()
        if log.settings is not None and log.settings.embedded
    )
    return logs + sum(
        machines_of_front(log.front.settings)
        for log in forest.fronts.values()
        if log.front is not None and log.front.settings.embedded
    )


def machines_of_front(settings: EngineSettings) -> int:
    """Its sequencers, and one controller."""
    assert settings.sequencers > 0
    return settings.sequencers + 1


def nodes(engine: str, settings: EngineSettings) -> int:
    """How many machines serve such an embedded log."""
    return settings.sequencers + settings.shards * settings.replicas + CONTROLLERS[engine]
