"""Where the processes of a local Belfast log are: each at ports of its own."""

from itertools import chain
from pathlib import Path

import pytest

from anabranch.apps.processes.local_log import LogLayout, LogShape, settle
from anabranch.apps.processes.servers import ServerProcess
from anabranch.core.errors import BadRequest


def ports(layout: LogLayout) -> list[int]:
    nodes = [*layout.sequencers, *chain.from_iterable(each.replicas for each in layout.shards)]
    return [port for node in nodes for port in (node.port, node.probes)]


def test_no_two_processes_are_given_one_port(tmp_path: Path) -> None:
    layout = settle(tmp_path, LogShape(sequencers=3, shards=150, copies=2))
    assert [len(each.replicas) for each in layout.shards] == [2] * 150
    found = ports(layout)
    assert len(set(found)) == len(found) == 2 * (3 + 300)


def test_shards_that_come_later_leave_the_others_where_they_are(tmp_path: Path) -> None:
    before = settle(tmp_path, LogShape(sequencers=1, shards=2, copies=2))
    after = settle(tmp_path, LogShape(sequencers=1, shards=4, copies=2))
    assert after.shards[:2] == before.shards
    assert [each.name for each in after.shards] == [f"shard-{number}" for number in range(4)]
    assert settle(tmp_path, LogShape(sequencers=1, shards=4, copies=2)) == after


def test_numbers_that_arent_given_stay_and_replicas_cant_be_changed(tmp_path: Path) -> None:
    before = settle(tmp_path, LogShape(sequencers=1, shards=2, copies=3))
    assert settle(tmp_path, LogShape()) == before
    assert settle(tmp_path, LogShape(copies=3)) == before
    with pytest.raises(BadRequest, match="its shards have 3 replicas each: leave out --copies"):
        settle(tmp_path, LogShape(copies=2))
    more = settle(tmp_path, LogShape(shards=3))
    assert [len(place.replicas) for place in more.shards] == [3, 3, 3]


def test_a_process_whose_port_was_taken_says_so(tmp_path: Path) -> None:
    said = "error: 127.0.0.1:1 is not available now: Address already in use"
    process = ServerProcess("late", ["sh", "-c", f"echo '{said}'"], tmp_path, lambda: False)
    assert not process.lost_its_port
    process.launch()
    process.wait_ended()
    assert process.lost_its_port
