"""Writers: programs whose marked appends a log does once, until they are released."""

from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import AfterValidator, Field

from anabranch.apps.http.calls import Ask, OnlyOnce
from anabranch.apps.http.logs import NAME_CHARS_MAX, Name
from anabranch.apps.http.models import RequestModel, ResponseModel, StrictWhole
from anabranch.apps.http.problems import OF_LOG, ON_CHANGE
from anabranch.apps.http.refusals import UnknownWriter
from anabranch.core.bolt.protocol.commands import Done
from anabranch.core.bolt.protocol.marks import (
    CompleteVersion,
    ReadWriters,
    ReleaseWriter,
    Writers,
    WriterState,
)
from anabranch.core.errors import TooMany, WriterConflict

_INT31_END = 1 << 31

router = APIRouter(tags=["writers"])

WriterName = Annotated[
    str, Path(alias="writer", max_length=NAME_CHARS_MAX, examples=["query-7f3c"])
]


def _part(text: str) -> str:
    if int(text) >= _INT31_END:
        raise ValueError("a part lies below 2^31")
    return text


PartNumber = Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,9})$"), AfterValidator(_part)]
"""A name in JSON is text; each number has one spelling only."""


class Completing(RequestModel):
    version: StrictWhole
    parts: dict[PartNumber, Annotated[int, Field(strict=True, ge=0, lt=_INT31_END)]] = Field(
        description="Every part of the version that has records, with the number of its batches.",
        examples=[{"0": 2, "1": 1}],
    )


class WriterOut(ResponseModel):
    """What a log itself remembers of a writer."""

    name: str
    complete: int | None = Field(description="Its highest complete version.")
    parts: dict[str, int] = Field(
        description="Of that version, each with the number of its batches.", examples=[{"0": 2}]
    )
    open: dict[str, dict[str, int]] = Field(
        description="Each version that isn't complete, with its parts and how many batches of "
        "them the log has.",
        examples=[{"5": {"0": 1}}],
    )
    at_ms: int = Field(
        description="When it last appended, completed or came with a promotion, in milliseconds "
        "since 1970."
    )

    @classmethod
    def of(cls, state: WriterState) -> "WriterOut":
        return cls(
            name=state.writer,
            complete=state.complete if state.complete >= 0 else None,
            parts=_by_part(state.parts),
            open={str(each.version): _by_part(each.parts) for each in state.open},
            at_ms=state.at,
        )


class WritersOut(ResponseModel):
    writers: list[WriterOut] = Field(description="In order of name.")


_OF_WRITER = OF_LOG | ON_CHANGE


@router.get(
    "/v1/logs/{log}/writers",
    summary="Every writer that a log remembers",
    responses=OF_LOG.documented,
)
async def read_writers(name: Name, ask: Ask) -> WritersOut:
    log = await ask.log(name)
    found = await ask.call(ReadWriters(log.id), Writers, f"read writers of {log.name}")
    return WritersOut(writers=[WriterOut.of(each) for each in found.writers])


@router.get(
    "/v1/logs/{log}/writers/{writer}",
    summary="What a log remembers of a writer",
    responses=(OF_LOG | UnknownWriter("orders", "query-7f3c")).documented,
)
async def read_writer(name: Name, writer: WriterName, ask: Ask) -> WriterOut:
    log = await ask.log(name)
    found = await ask.call(ReadWriters(log.id, writer), Writers, f"read a writer of {log.name}")
    if not found.writers:
        raise UnknownWriter(log.name, writer)
    return WriterOut.of(found.writers[0])


@router.post(
    "/v1/logs/{log}/writers/{writer}/complete",
    status_code=204,
    response_class=Response,
    summary="Close a version that is in the log whole",
    responses=(
        _OF_WRITER
        | WriterConflict("orders", "query-7f3c", 3, "the log has no part 1 of it")
        | TooMany("parts of writers' versions in orders", 20_000, "writer_parts_max")
    ).documented,
)
async def complete_version(
    name: Name, writer: WriterName, body: Completing, ask: Ask, once: OnlyOnce
) -> None:
    parts = sorted((int(part), batches) for part, batches in body.parts.items())
    await ask.change(
        name,
        once,
        lambda log, _: CompleteVersion(log, writer, body.version, parts, once.id),
        Done,
        f"complete version {body.version} of a writer of {name}",
    )


@router.delete(
    "/v1/logs/{log}/writers/{writer}",
    status_code=204,
    response_class=Response,
    summary="Have a log forget a writer",
    responses=_OF_WRITER.documented,
)
async def release_writer(name: Name, writer: WriterName, ask: Ask, once: OnlyOnce) -> None:
    await ask.change(
        name,
        once,
        lambda log, _: ReleaseWriter(log, writer, once.id),
        Done,
        f"release a writer of {name}",
    )


def _by_part(parts: list[tuple[int, int]]) -> dict[str, int]:
    """How many batches each has."""
    return {str(part): batches for part, batches in parts}
