"""Logs as resources: made, found, compared, deleted."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from anabranch.apps.http.calls import Ask, OnlyOnce
from anabranch.apps.http.models import (
    At,
    Diff,
    Log,
    Logs,
    Moment,
    NewLog,
    Range,
    ResponseModel,
    Tree,
    Whole,
)
from anabranch.apps.http.problems import ANY, OF_LOG, ON_CHANGE
from anabranch.client.catalogue import NOTHING_GIVEN, front_settings
from anabranch.core.bolt.protocol.commands import Description, Done
from anabranch.core.bolt.protocol.messages import (
    ClientMessage,
    Compare,
    CreateLog,
    DeleteLog,
    ListLogs,
    PositionAt,
    Squash,
)
from anabranch.core.bolt.protocol.queries import At as Found
from anabranch.core.bolt.protocol.queries import Comparison, Listing, Mark
from anabranch.core.bolt.protocol.set_sums import ReadSetSum
from anabranch.core.bolt.protocol.set_sums import SetSum as Summed
from anabranch.core.errors import (
    BadName,
    BadRequest,
    EngineNotServed,
    FrontNotServed,
    LogExists,
    LogHasForks,
    OutOfRange,
    TooMany,
)
from anabranch.core.types import Kind, LogId

LIST_MAX = 10_000
NAME_CHARS_MAX = 1_000


class SetSum(ResponseModel):
    """One number for a range's batches, whatever their order: an audit computes it anew from the
    data.
    """

    start: int
    end: int = Field(
        description="Not included. Lower than it was asked for if more doesn't fit into one "
        "answer: go on from here. The set sum of both ranges is that of both modulo 2**32 - 1."
    )
    sum: int = Field(description="Modulo 2**32 - 1; 0 if nothing is summed.")
    summed: int = Field(description="Records whose batches the sum is of.")
    unsummed: list[Range] = Field(
        description="The other records: the range cuts their batches' extent, or nobody summed it."
    )
    settled: int = Field(description="Up to here positions never move.")


router = APIRouter(tags=["logs"])

Name = Annotated[
    str,
    Path(
        alias="log",
        max_length=NAME_CHARS_MAX,
        description="Full name of a log or fork: `orders`, `orders--what-if`, `orders@what-if`.",
        examples=["orders"],
    ),
]


def address(name: str) -> str:
    """Names hold nothing that a path would have to quote."""
    return f"/v1/logs/{name}"


@router.post(
    "/v1/logs",
    status_code=201,
    summary="Create a root log",
    responses=(
        ANY
        | ON_CHANGE
        | LogExists("orders")
        | BadName("or ders", "letters, digits, '.', '_' and '-' are allowed")
        | TooMany("logs and forks", 1_000_000, "logs_max")
        | EngineNotServed("ticks", "belfast")
        | FrontNotServed("clicks")
    ).documented,
)
async def create_log(body: NewLog, ask: Ask, once: OnlyOnce, response: Response) -> Log:
    settings = body.settings.chosen() if body.settings else None
    front = front_settings(body.name, body.engine, body.append, settings or NOTHING_GIVEN)
    message = CreateLog(
        body.name,
        once.id,
        body.by,
        body.why,
        engine=body.engine,
        settings=settings if front is None else None,
        front=front,
    )
    made = await ask.call(message, Description, f"create {body.name[:80]}")
    response.headers["Location"] = address(made.name)
    return Log.of(made)


@router.get("/v1/logs", summary="List logs and forks in order of name", responses=OF_LOG.documented)
async def list_logs(
    ask: Ask,
    prefix: Annotated[str, Query(max_length=NAME_CHARS_MAX, description="Of their names.")] = "",
    tree: Annotated[
        str | None, Query(max_length=NAME_CHARS_MAX, description="Only this root and its forks.")
    ] = None,
    after: Annotated[
        str, Query(max_length=NAME_CHARS_MAX, description="The `next` of an earlier answer.")
    ] = "",
    limit: Annotated[int, Query(ge=1, le=LIST_MAX)] = 1_000,
    owner: Annotated[
        str, Query(max_length=NAME_CHARS_MAX, description="What their owners' names begin with.")
    ] = "",
) -> Logs:
    listing = await ask.call(ListLogs(prefix, tree, after, limit, owner), Listing, "list logs")
    found = [Log.of(each) for each in listing.logs]
    if tree is not None and not found:
        # Of a root that is gone, forks may be there: only what lists nothing has to exist.
        await ask.log(tree)
    return Logs(logs=found, next=found[-1].name if listing.more else None)


@router.get("/v1/logs/{log}", summary="Describe a log", responses=OF_LOG.documented)
async def describe_log(name: Name, ask: Ask) -> Log:
    return Log.of(await ask.log(name))


@router.delete(
    "/v1/logs/{log}",
    status_code=204,
    response_class=Response,
    summary="Delete a root log, or squash a fork",
    responses=(OF_LOG | ON_CHANGE | LogHasForks("orders", 2)).documented,
)
async def delete_log(
    name: Name,
    ask: Ask,
    once: OnlyOnce,
    force: Annotated[
        bool,
        Query(description="Also a root with forks: squash continuous ones, orphan severed ones."),
    ] = False,
) -> None:
    def removal(log: LogId, kind: Kind) -> ClientMessage:
        return DeleteLog(log, once.id, force) if kind is Kind.ROOT else Squash(log, once.id)

    await ask.change(name, once, removal, Done, f"delete {name}")


@router.get(
    "/v1/tree/{log}", summary="A log's root and all forks of it", responses=OF_LOG.documented
)
async def tree_of_log(name: Name, ask: Ask) -> Tree:
    root = (await ask.log(name)).root
    listing = await ask.call(ListLogs(tree=root, count_max=LIST_MAX), Listing, f"tree of {name}")
    logs = [Log.of(each) for each in _in_tree_order(listing.logs)]
    return Tree(root=root, logs=logs, complete=not listing.more)


@router.get(
    "/v1/logs/{log}/diff/{other}",
    summary="Compare two logs",
    responses=(OF_LOG | BadRequest("a comparison", "begin anew")).documented,
)
async def diff_logs(
    name: Name,
    other: Annotated[str, Path(max_length=NAME_CHARS_MAX)],
    ask: Ask,
    after: Annotated[
        str | None, Query(max_length=NAME_CHARS_MAX, description="The `next` of the page before.")
    ] = None,
) -> Diff:
    mark = None if after is None else Mark.parse(after)
    a, b = await ask.log(name), await ask.log(other)
    found = await ask.call(Compare(a.id, b.id, mark), Comparison, f"compare {a.name} and {b.name}")
    return Diff(
        since=found.since,
        shared=found.shared,
        only_a=_ranges(found.only_a),
        only_b=_ranges(found.only_b),
        trimmed_a=_ranges(found.trimmed_a),
        trimmed_b=_ranges(found.trimmed_b),
        complete=found.complete,
        next=found.next and found.next.text,
    )


@router.get(
    "/v1/logs/{log}/positions",
    summary="The first position committed at or after a time",
    responses=OF_LOG.documented,
)
async def position_at(name: Name, ask: Ask, at: Annotated[Moment, Query()]) -> At:
    log = await ask.log(name)
    found = await ask.call(PositionAt(log.id, at), Found, f"find a time in {log.name}")
    return At(position=found.position)


@router.get(
    "/v1/logs/{log}/sum",
    summary="The set sum of a range's batches",
    responses=(
        OF_LOG | OutOfRange("orders", 99, 0, 12) | BadRequest("a set sum", "its range ends at 3")
    ).documented,
)
async def sum_of_range(
    name: Name,
    ask: Ask,
    start: Annotated[
        Whole | None, Query(alias="from", description="By default where the log begins.")
    ] = None,
    end: Annotated[
        Whole | None,
        Query(alias="to", description="Not included. By default the settled position."),
    ] = None,
) -> SetSum:
    log = await ask.log(name)
    found = await ask.call(ReadSetSum(log.id, start, end), Summed, f"sum {log.name}")
    return SetSum(
        start=found.start,
        end=found.end,
        sum=found.sum,
        summed=found.summed,
        unsummed=_ranges(found.unsummed),
        settled=found.settled,
    )


def _ranges(ranges: list[tuple[int, int]]) -> list[Range]:
    return [Range(first=first, end=end) for first, end in ranges]


def _in_tree_order(logs: list[Description]) -> list[Description]:
    """Each after its parent, oldest first; one whose parent is gone stands beside the root."""
    known = {log.name for log in logs}
    forks: dict[str | None, list[Description]] = {}
    for log in sorted(logs, key=lambda each: (each.kind is not Kind.ROOT, each.id), reverse=True):
        forks.setdefault(log.parent if log.parent in known else None, []).append(log)
    ordered: list[Description] = []
    ahead = forks.get(None, [])
    while ahead:
        ordered.append(ahead.pop())
        ahead.extend(forks.get(ordered[-1].name, []))
    return ordered
