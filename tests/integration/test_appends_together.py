"""Records that are appended together are one batch: all of them are in the log, or none."""

from collections.abc import Iterator
from typing import Any

import pytest

import anabranch
from anabranch import testing
from anabranch.core.errors import BadRequest, BatchTooLarge
from anabranch.core.limits import Limits


@pytest.fixture(scope="module")
def service() -> Iterator[anabranch.Service]:
    limits = Limits(batch_bytes_max=4_096, record_bytes_max=2_048)
    with testing.server(limits=limits) as server, anabranch.connect(server.url) as connected:
        yield connected


@pytest.mark.parametrize("engine", ["belfast", "erwin", "lazy"])
def test_a_batch_is_appended_whole_or_not_at_all(service: anabranch.Service, engine: str) -> None:
    log: Any
    match engine:
        case "lazy":
            log = service.create(engine, append="lazy")
        case "belfast":
            log = service.create(engine, engine="belfast")
        case _:
            log = service.create(engine, engine="erwin")
    log.append(b"first")
    done = log.append_many((value for value in (b"a", b"b")), together=True)
    positions = [each.position or each.receipt.position() for each in done]
    assert positions[0] < positions[1]
    with pytest.raises(BatchTooLarge):
        log.append_many([b"x" * 1_000] * 6, together=True)
    with pytest.raises(BadRequest):
        log.append_many([], together=True)
    log.append_many([b"last"], together=True)
    found = {each.position: each.value for each in log.read(0, wait=30)}
    while b"last" not in found.values():
        found |= {each.position: each.value for each in log.read(max(found) + 1, wait=30)}
    assert list(found.values()) == [b"first", b"a", b"b", b"last"]
