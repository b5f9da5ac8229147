"""Appends to an Erwin log under request ids, over connections: wherever their records are kept."""

from typing import Literal

import pytest

import anabranch
from anabranch import testing
from anabranch.client.sync_erwin_log import ErwinLog
from anabranch.core.errors import RequestReused


def append(log: ErwinLog, request_id: str, value: bytes) -> int:
    (done,) = log.append_many([value], request_id=request_id, timeout=20)
    assert done.receipt is not None
    return done.receipt.position(timeout=20)


@pytest.mark.parametrize("mode", ["m", "st"])
def test_a_request_is_repeated_after_its_shard_was_closed_and_no_other_takes_its_id(
    mode: Literal["m", "st"],
) -> None:
    with testing.server() as server, anabranch.connect(server.url) as service:
        log = service.create("audit", engine="erwin", mode=mode, shards=2)
        assert isinstance(log, ErwinLog)
        ids = [f"r{number}" for number in range(6)]
        first = [append(log, id, id.encode()) for id in ids]
        log.close_shard("shard-1")
        assert [append(log, id, id.encode()) for id in ids] == first
        for id in ids:
            with pytest.raises(RequestReused):
                append(log, id, b"another")
        assert [record.value for record in log.read(0)] == [id.encode() for id in ids]
