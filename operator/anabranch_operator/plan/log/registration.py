"""How a Log resource comes to have its log in the log service, whichever engine serves it."""

from msgspec.structs import replace

from anabranch_operator.api.anabranch_names import (
    Description,
    EngineSettings,
    LogExists,
    Nanoseconds,
)
from anabranch_operator.api.conditions import Reason, Type
from anabranch_operator.api.log import Engine, LogPhase
from anabranch_operator.plan.engine.actions import Action, Adopt, CreateRoot, Plan
from anabranch_operator.plan.engine.retries import Troubles
from anabranch_operator.plan.engine.status import Said
from anabranch_operator.plan.engine.world import Log, World
from anabranch_operator.plan.log import conditions


def log_name(log: Log) -> str:
    return log.spec.log_name or log.ref.name


def is_new(world: World, log: Log) -> bool:
    """Was its log never seen in the log service?"""
    return log.status.log_id is None and log.owner not in world.service.fates


def register(
    world: World,
    log: Log,
    troubles: Troubles,
    settings: EngineSettings | None = None,
    front: EngineSettings | None = None,
) -> tuple[tuple[Action, ...], Said | None]:
    """What to ask of the log service, and what is told once it has refused."""
    name = log_name(log)
    engine = "" if log.spec.engine is Engine.BOLT else log.spec.engine.value
    make = CreateRoot(
        name=name,
        owner=log.owner,
        why=f"{log.ref}",
        engine=engine,
        settings=settings,
        front=front,
    )
    trouble = troubles.with_action(CreateRoot)
    if trouble is None:
        return (make,), None
    if trouble.refusal.code != LogExists.code or not log.spec.adopt:
        return (make,), conditions.refused(trouble)
    # What was refused stays wanted: its pause would be forgotten otherwise.
    if not conditions.may_adopt(world, log):
        return (make,), conditions.not_adopted(world, name)
    held = troubles.with_action(Adopt)
    adopt = Adopt(log=name, owner=log.owner)
    return (make, adopt), None if held is None else conditions.refused(held)


def of_another_engine(log: Log, found: Description) -> Said | None:
    """An adopted log may be served by another engine than the resource asks for."""
    if found.engine == log.spec.engine.value:
        return None
    message = (
        f"{found.name} is a {found.engine} log: delete this resource, which leaves the log as it "
        f"is, and make a Log with engine {found.engine}, or with another logName"
    )
    return Said(Type.READY, False, Reason.NAME_TAKEN, message)


def lost(world: World, log: Log, now: Nanoseconds) -> Plan:
    status = replace(log.status, phase=LogPhase.LOST)
    message = (
        "the log service doesn't have this resource's log any more, or somebody else declares it: "
        "delete this resource, and make another"
    )
    said = Said(Type.READY, False, Reason.LOG_LOST, message)
    return conditions.told(world, log, now, status, [said])
