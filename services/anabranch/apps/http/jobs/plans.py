"""Scan plans: which bytes of which objects hold a range of a log, and URLs that fetch them."""

import struct
from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter, Query, Response

from anabranch.apps.http.calls import Ask, Asking, OnlyOnce
from anabranch.apps.http.jobs.plan_models import (
    LEASE_MS,
    Address,
    NewPlan,
    PlannedScan,
    PlannedScans,
    RangeOut,
    Renewal,
    SignedRanges,
    Signing,
    SliceOut,
    SlicePage,
)
from anabranch.apps.http.logs import Name
from anabranch.apps.http.models import Whole
from anabranch.apps.http.problems import ANY, OF_LOG, ON_CHANGE, WITH_BODY
from anabranch.apps.http.records import Origin
from anabranch.client.bolt.scans import PAGE_SLICES
from anabranch.core.bolt.protocol.commands import Done
from anabranch.core.bolt.protocol.messages import ClientMessage
from anabranch.core.bolt.protocol.queries import PlanPage
from anabranch.core.bolt.protocol.scans import (
    AS_FAR,
    SIGNED_SLICES_MAX,
    EndPlan,
    ListPlans,
    Plan,
    Plans,
    PlanScan,
    ReadPlan,
    RenewPlan,
    SignedScan,
    SignScan,
)
from anabranch.core.errors import (
    BadRequest,
    NotFetchable,
    NotSealed,
    OutOfRange,
    PlanEnded,
    PlanOutdated,
    QuotaExceeded,
    ReadBlocked,
    TooMany,
)
from anabranch.core.records.objects import ObjectName
from anabranch.core.types import Kind, LogId

PAGE_DEFAULT = SIGNED_SLICES_MAX
"""What one request can have signed."""

router = APIRouter(tags=["scans"])

_ENDED = PlanEnded("0123456789abcdef", "orders", "its lease was over before it was renewed")
_OF_PLAN = ANY | WITH_BODY | _ENDED


@router.post(
    "/v1/logs/{log}/plans",
    status_code=201,
    summary="Plan a scan, and keep the objects that it names",
    responses=(
        OF_LOG
        | ON_CHANGE
        | OutOfRange("orders", 99, 0, 12, OutOfRange.SCAN)
        | ReadBlocked("orders", 12, "orders--try")
        | TooMany("scan plans of orders", 100, "plans_per_log_max")
    ).documented,
)
async def plan_scan(
    name: Name, ask: Ask, once: OnlyOnce, response: Response, body: NewPlan | None = None
) -> PlannedScan:
    wanted = body or NewPlan()  # pyright: ignore[reportCallIssue]  # every field has a default

    def message(log: LogId, _: Kind) -> ClientMessage:
        return PlanScan(
            log,
            once.id,
            wanted.lease_ms,
            AS_FAR if wanted.start is None else wanted.start,
            AS_FAR if wanted.end is None else wanted.end,
            wanted.speculative,
            wanted.by,
        )

    plan = PlannedScan.of(await ask.change(name, once, message, Plan, f"plan a scan of {name}"))
    response.headers["Location"] = f"/v1/plans/{plan.id}"
    return plan


@router.get(
    "/v1/plans",
    summary="Every scan plan that is alive, and what they hold",
    responses=ANY.documented,
)
async def list_plans(ask: Ask) -> PlannedScans:
    found = await ask.call(ListPlans(), Plans, "list scan plans")
    return PlannedScans(
        plans=[PlannedScan.of(each) for each in found.plans],
        held_objects=found.held_objects,
        held_bytes=found.held_bytes,
    )


@router.get(
    "/v1/plans/{plan}/slices",
    summary="A page of a scan plan: where its records lie",
    responses=(
        OF_LOG
        | _ENDED
        | PlanOutdated("0123456789abcdef", "orders", 3, "the log was trimmed up to 12")
        | OutOfRange("orders", 99, 0, 12, OutOfRange.PAGE)
    ).documented,
)
async def read_plan(
    address: Address,
    ask: Ask,
    start: Annotated[
        Whole,
        Query(alias="from", description="A position: the plan's `start`, then each page's `next`."),
    ],
    limit: Annotated[int, Query(ge=1, le=PAGE_SLICES, description="Slices.")] = PAGE_DEFAULT,
) -> SlicePage:
    message = ReadPlan(address.log, address.plan, start, limit)
    page = await ask.call(message, PlanPage, f"read scan plan {address.text}")
    origins = {each.origin for each in page.slices}
    names = {each: await ask.name(each) for each in sorted(origins)}
    return SlicePage(slices=[*_shown(ask, page, names)], next=page.next)


@router.post(
    "/v1/plans/{plan}/signatures",
    summary="URLs that fetch slices of a scan plan without keys of the store",
    responses=(
        _OF_PLAN
        | NotSealed("0123456789abcdef", "orders", "1000000000c", 0, 4_096)
        | NotFetchable("they are in the memory of this process")
        | QuotaExceeded("orders", "read_bytes_per_s", 1_048_576, 1_050_000, 2)
    ).documented,
)
async def sign_slices(address: Address, body: Signing, ask: Ask) -> SignedRanges:
    cluster = ask.front.backend.cluster
    for number, each in enumerate(body.slices):
        if ObjectName.parse(each.object).cluster != cluster:
            reason = f"it isn't the name of an object of {cluster}"
            raise BadRequest(f"body.slices.{number}.object", reason)
    message = SignScan(address.log, address.plan, [each.sealed for each in body.slices])
    found = await ask.call(message, SignedScan, f"sign slices of scan plan {address.text}")
    ranges = [
        RangeOut(
            object=str(ObjectName.of(cluster, each.object)),
            offset=each.offset,
            length=each.length,
            url=each.url,
            range=f"bytes={each.offset}-{each.offset + each.length - 1}",
        )
        for each in found.ranges
    ]
    return SignedRanges(ranges=ranges, valid_ms=found.valid_ms)


@router.post(
    "/v1/plans/{plan}/renew",
    summary="Let a scan plan live on",
    responses=_OF_PLAN.documented,
)
async def renew_plan(address: Address, ask: Ask, body: Renewal | None = None) -> PlannedScan:
    lease_ms = body.lease_ms if body else LEASE_MS
    message = RenewPlan(address.log, address.plan, lease_ms)
    return PlannedScan.of(await ask.call(message, Plan, f"renew scan plan {address.text}"))


@router.delete(
    "/v1/plans/{plan}",
    status_code=204,
    response_class=Response,
    summary="End a scan plan: what only it held may be deleted",
    responses=(ANY | WITH_BODY).documented,
)
async def end_plan(address: Address, ask: Ask) -> None:
    message = EndPlan(address.log, address.plan)
    await ask.call(message, Done, f"end scan plan {address.text}")


def _shown(ask: Asking, page: PlanPage, names: dict[LogId, str]) -> Iterator[SliceOut]:
    cluster = ask.front.backend.cluster
    seals = struct.unpack(f">{len(page.slices)}Q", page.seals)
    for each, seal in zip(page.slices, seals, strict=True):
        yield SliceOut(
            first=each.first,
            count=each.count,
            object=str(ObjectName.of(cluster, each.object)),
            offset=each.offset,
            length=each.length,
            skip=each.skip,
            origin=Origin(log=names[each.origin], position=each.origin_first),
            seal=f"{seal:016x}",
        )
