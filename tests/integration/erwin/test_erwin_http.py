"""HTTP serves an Erwin log whose nodes are processes elsewhere, also while a leader is replaced."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
from tests.integration.erwin.deployment import PATIENCE_S, connected, deployed, leader

from anabranch import testing
from anabranch.apps.processes.local_log import LocalLog, Node, Promise
from anabranch.apps.processes.servers import EtcdServer


def test_an_append_over_http_is_there_once_though_its_leader_died(
    tmp_path: Path, etcd: EtcdServer
) -> None:
    with (
        deployed(tmp_path / "log", Promise("m", "fsync"), etcd=(etcd.address,)) as local,
        testing.server() as server,
        httpx.Client(base_url=server.http, timeout=PATIENCE_S) as http,
    ):
        layout = local.layout
        settings = {
            "addresses": [pair.address for pair in layout.sequencers],
            "cluster": layout.cluster,
            "shards": len(layout.shards),
        }
        made = http.post(
            "/v1/logs", json={"name": "audit", "engine": "erwin", "settings": settings}
        )
        assert made.status_code == 201, made.text
        assert appended(http, "a", "before")["position"] == 0
        asyncio.run(found_leader(local)).kill()
        first = appended(http, "b", "while")
        assert appended(http, "b", "while") == first
        assert appended(http, "c", "after")["position"] == 2
        page = http.get("/v1/logs/audit/records").json()
        assert [each["value"] for each in page["records"]] == ["a", "b", "c"]


def appended(http: httpx.Client, value: str, key: str) -> dict[str, Any]:
    answer = http.post(
        "/v1/logs/audit/records",
        params={"sync": True},
        json={"records": [{"value": value}]},
        headers={"Idempotency-Key": key, "Deadline-Ms": "60000"},
    )
    assert answer.status_code == 201, answer.text
    return answer.json()


async def found_leader(local: LocalLog) -> Node:
    async with connected(local) as log:
        return await leader(log, local)
