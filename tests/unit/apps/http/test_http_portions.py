"""How much JSON is made at once of what a log holds, however small it was compressed."""

import asyncio
import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.apps.http.calls import Asking
from anabranch.apps.http.reads import gathered
from anabranch.apps.http.records import PORTION_BYTES, Encoding, Sized, portions
from anabranch.core.limits import KIB, MIB
from anabranch.core.records.batch import Codec
from anabranch.core.records.origins import Run
from anabranch.core.records.record import Record, encode
from anabranch.core.types import LogId


class Names:
    async def name(self, log: LogId) -> str:
        return f"log-{log}"


def flow(batches: list[bytes], counts: list[int], encoding: Encoding | None = None) -> Any:
    runs = [
        Run(sum(counts[:nth]), counts[nth], 0, LogId(1), sum(counts[:nth]), len(batch))
        for nth, batch in enumerate(batches)
    ]
    return portions(cast("Asking", Names()), runs, batches, encoding)


async def found(batches: list[bytes], counts: list[int]) -> list[list[Sized]]:
    return [portion async for portion in flow(batches, counts)]


def rendered(record: Sized) -> int:
    return len(record.record.model_dump_json())


def bomb(size: int, records: int = 15) -> bytes:
    return encode([Record(b"\0" * size) for _ in range(records)], Codec.ZSTD, now=1)


@pytest.mark.parametrize("size", [MIB, 100 * KIB, KIB])
def test_a_portion_ends_by_the_bytes_of_its_json(size: int) -> None:
    portions = asyncio.run(found([bomb(size), bomb(size)], [15, 15]))
    largest = max(rendered(record) for portion in portions for record in portion)
    assert sum(map(len, portions)) == 30
    assert max(sum(map(rendered, portion)) for portion in portions) < PORTION_BYTES + 2 * largest


@pytest.mark.parametrize(("encoding", "count"), [(None, 2), (Encoding.BASE64, 8)])
def test_a_page_ends_by_the_bytes_of_its_json(encoding: Encoding | None, count: int) -> None:
    async def page() -> int:
        return len(await gathered(flow([bomb(100 * KIB)], [15], encoding), MIB))

    assert asyncio.run(page()) == count


@given(st.text(alphabet=st.characters(max_codepoint=0x2FF, exclude_characters="\x7f")))
def test_the_bytes_of_a_value_are_those_of_its_json(text: str) -> None:
    [[record]] = asyncio.run(found([encode([Record(text.encode())], now=1)], [1]))
    assert record.bytes == len(json.dumps(text, ensure_ascii=False).encode()) - 2
