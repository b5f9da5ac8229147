"""Forks: made, decided; and what else changes a log: trim, cursors, receipts redeemed."""

import math
from typing import Annotated

from fastapi import APIRouter, Path, Response

from anabranch.apps.http.calls import Ask, OnlyOnce
from anabranch.apps.http.logs import NAME_CHARS_MAX, Name, address
from anabranch.apps.http.models import (
    At,
    Cursor,
    CursorMove,
    Cursors,
    Log,
    NewFork,
    NewQuota,
    Place,
    Promoted,
    Promoting,
    Redeeming,
    Squashing,
    Trimming,
)
from anabranch.apps.http.nodes import held_by_nodes, trim_at_nodes
from anabranch.apps.http.problems import OF_LOG, ON_CHANGE, WITH_BODY
from anabranch.apps.http.refusals import UnknownCursor
from anabranch.core.bolt.protocol import queries
from anabranch.core.bolt.protocol.commands import Description, Done, Promotion, Receipt
from anabranch.core.bolt.protocol.messages import (
    CommitCursor,
    DeleteCursor,
    Fork,
    Promote,
    PromoteIf,
    ReadCursors,
    Redeem,
    SetQuota,
    Squash,
    Trim,
)
from anabranch.core.bolt.protocol.queries import Settled
from anabranch.core.errors import (
    BadName,
    ForkBlocked,
    ForkMoved,
    IsRoot,
    LogExists,
    NoSpareBroker,
    NotPromotable,
    OutOfRange,
    ReceiptExpired,
    ReceiptPending,
    Refresh,
    TooMany,
    TrimTooFar,
    UnknownLog,
)
from anabranch.core.types import Kind, LogId

router = APIRouter(tags=["forks"])
cursors = APIRouter(tags=["cursors"])

CursorName = Annotated[str, Path(max_length=NAME_CHARS_MAX, examples=["billing"])]

_CHANGE = OF_LOG | ON_CHANGE


@router.post(
    "/v1/logs/{log}/forks",
    status_code=201,
    summary="Fork a log",
    responses=(
        _CHANGE
        | LogExists("orders--what-if")
        | BadName("what if", "letters, digits, '.', '_' and '-' are allowed")
        | ForkBlocked("orders", "orders--try", 12)
        | OutOfRange("orders", 99, 0, 11, OutOfRange.PAST)
        | TooMany("forks of orders", 100_000, "forks_per_log_max")
        | NoSpareBroker("orders--what-if", 3)
    ).documented,
)
async def fork_log(name: Name, body: NewFork, ask: Ask, once: OnlyOnce, response: Response) -> Log:
    made = await ask.change(
        name,
        once,
        lambda log, _: Fork(
            log,
            body.kind,
            once.id,
            body.name,
            body.past,
            body.at,
            body.promotable,
            None if body.ttl_s is None else math.ceil(body.ttl_s * 1_000),
            body.on_parent_delete,
            body.by,
            body.why,
            exclusive=body.exclusive,
            quota=None if body.quota is None else body.quota.quota,
        ),
        Description,
        f"fork {name}",
    )
    response.headers["Location"] = address(made.name)
    return Log.of(made)


@router.post(
    "/v1/logs/{log}/promote",
    summary="Make a promotable fork its parent",
    responses=(
        _CHANGE
        | NotPromotable("orders", "it is a root")
        | ForkMoved("orders--what-if", 3, 4)
        | TooMany("cursors of orders", 10_000, "cursors_per_log_max")
    ).documented,
)
async def promote_fork(
    name: Name, ask: Ask, once: OnlyOnce, body: Promoting | None = None
) -> Promoted:
    expected = body.expect_own if body else None

    def message(log: LogId, _: Kind) -> Promote:
        if expected is None:
            return Promote(log, once.id)
        return PromoteIf(log, once.id, expected)

    done = await ask.change(name, once, message, Promotion, f"promote {name}")
    return Promoted.model_validate(done)


@router.post(
    "/v1/logs/{log}/squash",
    status_code=204,
    response_class=Response,
    summary="Squash a fork and all that continuously inherits from it",
    responses=(_CHANGE | IsRoot("orders")).documented,
)
async def squash_fork(name: Name, ask: Ask, once: OnlyOnce, body: Squashing | None = None) -> None:
    by = body.by if body else ""
    await ask.change(name, once, lambda log, _: Squash(log, once.id, by), Done, f"squash {name}")


@router.post(
    "/v1/logs/{log}/trim",
    status_code=204,
    response_class=Response,
    summary="Forget the records below a position",
    responses=(
        _CHANGE | OutOfRange("orders", 99, 0, 12, OutOfRange.TRIM) | TrimTooFar(99, 12, "orders")
    ).documented,
)
async def trim_log(name: Name, body: Trimming, ask: Ask, once: OnlyOnce) -> None:
    try:
        log = await ask.log(name)
    except (Refresh, UnknownLog):
        log = None  # what was trimmed under this key may be known
    if log is not None and held_by_nodes(log):
        await trim_at_nodes(ask, log, body.before)
        return
    await ask.change(
        name, once, lambda log, _: Trim(log, body.before, once.id), Done, f"trim {name}"
    )


@router.put(
    "/v1/logs/{log}/quota",
    summary="Limit what may be appended to a log and read from it in a second",
    responses=_CHANGE.documented,
)
async def set_quota(name: Name, body: NewQuota, ask: Ask, once: OnlyOnce) -> Log:
    made = await ask.change(
        name,
        once,
        lambda log, _: SetQuota(log, body.quota, once.id),
        Description,
        f"set the quota of {name}",
    )
    return Log.of(made)


@router.post(
    "/v1/receipts/redeem",
    summary="The position behind a receipt",
    responses=(
        OF_LOG | WITH_BODY | ReceiptPending("orders", "orders--try") | ReceiptExpired("orders")
    ).documented,
)
async def redeem_receipt(body: Redeeming, ask: Ask) -> Place:
    message = Redeem(Receipt.parse(body.receipt), body.wait_ms)
    return Place.model_validate(
        await ask.call(message, Settled, f"redeem {body.receipt}", body.wait_ms)
    )


@cursors.get("/v1/logs/{log}/cursors", summary="Every cursor of a log", responses=OF_LOG.documented)
async def read_cursors(name: Name, ask: Ask) -> Cursors:
    _, found = await _found(name, ask)
    return Cursors(cursors=found.positions, on_promote=found.on_promote)


@cursors.get(
    "/v1/logs/{log}/cursors/{cursor}",
    summary="Where a cursor is",
    responses=(OF_LOG | UnknownCursor("orders", "billing")).documented,
)
async def read_cursor(name: Name, cursor: CursorName, ask: Ask) -> Cursor:
    log, found = await _found(name, ask)
    if cursor not in found.positions:
        raise UnknownCursor(log.name, cursor)
    return Cursor(position=found.positions[cursor], on_promote=found.on_promote[cursor])


@cursors.put(
    "/v1/logs/{log}/cursors/{cursor}",
    summary="Have a log keep a position",
    responses=(
        _CHANGE
        | OutOfRange("orders", 99, 0, 12, OutOfRange.CURSOR)
        | BadName("bil ling", "letters, digits, '.', '_' and '-' are allowed")
        | TooMany("cursors of orders", 10_000, "cursors_per_log_max")
    ).documented,
)
async def commit_cursor(
    name: Name, cursor: CursorName, body: CursorMove, ask: Ask, once: OnlyOnce
) -> At:
    await ask.change(
        name,
        once,
        lambda log, _: CommitCursor(log, cursor, body.position, once.id, body.on_promote),
        Done,
        f"commit cursor {cursor} of {name}",
    )
    return At(position=body.position)


@cursors.delete(
    "/v1/logs/{log}/cursors/{cursor}",
    status_code=204,
    response_class=Response,
    summary="Forget a cursor",
    responses=_CHANGE.documented,
)
async def delete_cursor(name: Name, cursor: CursorName, ask: Ask, once: OnlyOnce) -> None:
    await ask.change(
        name,
        once,
        lambda log, _: DeleteCursor(log, cursor, once.id),
        Done,
        f"delete cursor {cursor} of {name}",
    )


async def _found(name: str, ask: Ask) -> tuple[Description, queries.Cursors]:
    log = await ask.log(name)
    found = await ask.call(ReadCursors(log.id), queries.Cursors, f"cursors of {log.name}")
    return log, found
