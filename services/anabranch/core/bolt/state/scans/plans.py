"""Scan plans, and the read horizon that keeps what they name (decision 75).

A plan records when it was made, and not what it names. Garbage is kept in the order in which it
became garbage, and nothing that became so since the oldest live plan was made is deleted. So a plan
costs the same whatever it names, and holds whatever takes extents from a log: compaction, trim,
squash. A plan ends by a command only, which is journaled before anything that it held is deleted:
a leader that was replaced may still delete, but only what its own journal had let go.
"""

from msgspec.structs import replace

from anabranch.core.bolt.logs.forest import Log
from anabranch.core.bolt.logs.lineage import slices
from anabranch.core.bolt.logs.scan_plans import ScanPlan, plan_name
from anabranch.core.bolt.protocol.commands import Done, LogQuota, check_format
from anabranch.core.bolt.protocol.queries import FoundPlan, PlanPage
from anabranch.core.bolt.protocol.scans import (
    AS_FAR,
    PAGE_SLICES_MAX,
    SCANS_FORMAT,
    BeginPlan,
    EndPlan,
    Erased,
    EraseGarbage,
    FindPlan,
    LapsePlans,
    ListPlans,
    Plan,
    PlanId,
    Plans,
    ReadPlan,
    RenewPlan,
)
from anabranch.core.bolt.state.replica import Replica
from anabranch.core.errors import (
    BadRequest,
    OutOfRange,
    PlanOutdated,
    ReadBlocked,
    TooMany,
)
from anabranch.core.types import NEVER, Milliseconds, Position

SECRET_BYTES = 16
NAMED = "it was ended by request"
LAPSED = "its lease was over before it was renewed"
TOO_OLD = "it was made longer ago than plan_age_ms_max"
HELD_TOO_MUCH = "it was the oldest, and plans held back more garbage than plan_held_bytes_max"
ERASED = "garbage was erased by request"


def begin(replica: Replica, command: BeginPlan) -> Plan:
    check_format(replica.format, SCANS_FORMAT, "a scan plan")
    limits, plans = replica.limits, replica.plans
    log = replica.forest.find_own(command.log, "scan")
    what = f"a scan plan of {log.name}"
    if len(command.by) > limits.note_chars_max:
        raise BadRequest(what, f"'by' may have {limits.note_chars_max} characters (note_chars_max)")
    _check_lease(replica, log.name, command.lease_ms)
    if not command.plan > 0 or command.plan in plans.live or command.plan in plans.ended:
        raise BadRequest(what, "its id is another plan's")
    if len(command.secret) != SECRET_BYTES:
        raise BadRequest(what, f"its secret has {SECRET_BYTES} bytes")
    if len(plans.live) >= limits.plans_max:
        raise TooMany("scan plans", limits.plans_max, "plans_max")
    if plans.of_log(log.id) >= limits.plans_per_log_max:
        raise TooMany(f"scan plans of {log.name}", limits.plans_per_log_max, "plans_per_log_max")
    start, end, settled = _range(replica, log, command)
    plan = Plan(
        id=command.plan,
        log=log.id,
        name=log.name,
        start=start,
        end=end,
        generation=replica.forest.lineage_generation(log),
        settled=settled,
        began=replica.at,
        expires=replica.at + min(command.lease_ms, limits.plan_age_ms_max),
        by=command.by,
    )
    plans.live[plan.id] = ScanPlan(plan, command.secret)
    return plan


def renew(replica: Replica, command: RenewPlan) -> Plan:
    """Whatever became of the log: what pages have named so far is there for as long as the plan."""
    held = replica.plans.find(command.plan, command.log)
    plan = held.plan
    _check_lease(replica, plan.name, command.lease_ms)
    latest = plan.began + replica.limits.plan_age_ms_max
    expires = max(plan.expires, min(replica.at + command.lease_ms, latest))
    held.plan = replace(plan, expires=expires)
    return held.plan


def end(replica: Replica, command: EndPlan) -> Done:
    held = replica.plans.live.get(command.plan)
    if held is not None and held.plan.log == command.log:
        replica.plans.end(command.plan, NAMED)
    return Done()


def lapse(replica: Replica, command: LapsePlans) -> Done:
    """One that was renewed since the leader looked goes on."""
    plans = replica.plans
    overdue = {*plans.overdue(replica.at)}
    for id in command.plans:
        held = plans.live.get(id)
        if held is None:
            continue
        if command.held_too_much:
            plans.end(id, HELD_TOO_MUCH)
        elif id in overdue:
            aged = replica.at >= held.plan.began + replica.limits.plan_age_ms_max
            plans.end(id, TOO_OLD if aged else LAPSED)
    return Done()


def erase(replica: Replica, command: EraseGarbage) -> Erased:
    """Somebody must be able to say that it is gone: no plan and no grace keeps it."""
    check_format(replica.format, SCANS_FORMAT, "a scan plan")
    plans = replica.plans
    ended = [*plans.live]
    for id in ended:
        plans.end(id, ERASED)
    plans.erased = replica.at
    return Erased(len(ended), len(replica.references.garbage))


def read(replica: Replica, query: ReadPlan) -> PlanPage:
    """Below the position that was settled when the scan was planned no record ever moves: whatever
    happened between, pages there make one consistent whole, though compaction may have put later
    pages' records elsewhere. Beyond it they do unless a promotion moved something.
    """
    held = replica.plans.find(query.plan, query.log)
    plan = held.plan
    log = replica.forest.find_own(query.log, "scan")
    if not plan.start <= query.start <= plan.end:
        raise OutOfRange(log.name, query.start, plan.start, plan.end, OutOfRange.PAGE)
    if query.slices_max < 1:
        raise BadRequest(f"a page of {query.slices_max} slices", "it has one at least")
    if query.start == plan.end:
        return PlanPage([], plan.end, secret=held.secret)
    _check_current(replica, log, plan, query.start)
    count = min(query.slices_max, PAGE_SLICES_MAX)
    found = slices(replica.forest, log, query.start, plan.end, count)
    following = found[-1].first + found[-1].count
    assert following <= plan.end, "a page ends where its plan does"
    return PlanPage(found, following, secret=held.secret)


def find(replica: Replica, query: FindPlan) -> FoundPlan:
    held = replica.plans.find(query.plan, query.log)
    quota = replica.forest.quotas.get(query.log)
    quotas = [] if quota is None else [LogQuota(query.log, held.plan.name, quota)]
    return FoundPlan(held.plan, held.secret, quotas)


def listed(replica: Replica, query: ListPlans) -> Plans:
    plans, references = replica.plans, replica.references
    objects, size = references.held(plans.horizon, NEVER)
    return Plans([each.plan for each in plans.live.values()], objects, size)


def holding_too_much(replica: Replica, before: Milliseconds, bytes_max: int) -> list[PlanId]:
    """The oldest plans, as many as have to end so that no more than so much garbage that became so
    before a time is held back.
    """
    plans = [each.plan for each in replica.plans.live.values()]
    if not plans or plans[0].began >= before:
        return []
    held = [*replica.references.since(plans[0].began, before)]
    total, gone = sum(size for _, size in held), 0
    found: list[PlanId] = []
    for plan in plans:
        while gone < len(held) and held[gone][0] < plan.began:
            total -= held[gone][1]
            gone += 1
        if total <= bytes_max:
            break
        found.append(plan.id)
    return found


def _check_lease(replica: Replica, name: str, lease_ms: Milliseconds) -> None:
    limit = replica.limits.plan_lease_ms_max
    if not 0 < lease_ms <= limit:
        reason = f"it lies between 1 and {limit} ms (plan_lease_ms_max)"
        raise BadRequest(f"a lease of {lease_ms} ms for a scan plan of {name}", reason)


def _range(replica: Replica, log: Log, command: BeginPlan) -> tuple[Position, Position, Position]:
    """Where the scan starts and ends, and what is settled."""
    forest = replica.forest
    settled, undecided = forest.settled(log)
    tail = forest.tail(log)
    last = tail if command.speculative else settled
    start = log.start if command.start == AS_FAR else command.start
    end = last if command.end == AS_FAR else command.end
    if not log.start <= start <= tail:
        raise OutOfRange(log.name, start, log.start, tail)
    if last < max(start, end) <= tail:
        assert undecided is not None, "only an undecided fork keeps what lies below the tail back"
        raise ReadBlocked(log.name, max(start, end), undecided.name)
    if not start <= end <= tail:
        raise OutOfRange(log.name, end, start, last, OutOfRange.SCAN)
    return start, end, settled


def _check_current(replica: Replica, log: Log, plan: Plan, start: Position) -> None:
    name = plan_name(plan.id)
    moved = plan.generation != replica.forest.lineage_generation(log)
    if plan.end > plan.settled and moved:
        reason = f"a promotion has moved records from {plan.settled} on"
        raise PlanOutdated(name, log.name, start, reason)
    if start < log.start:
        raise PlanOutdated(name, log.name, start, f"the log was trimmed up to {log.start}")
