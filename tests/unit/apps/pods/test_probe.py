"""What those that watch a process are answered, asked over ASGI by a client that isn't ours."""

import asyncio
from typing import Any

import httpx
import pytest

from anabranch.apps.pods.probe import Probes, Readiness


def asked(method: str, path: str, *, failed: str | None = None, why: str = "") -> httpx.Response:
    async def ask() -> httpx.Response:
        app: Any = Probes(
            failed=lambda: failed,
            readiness=lambda: Readiness("broker-0", "broker", [why] if why else []),
            metrics=lambda: b"a_metric 1\n",
        )
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://pod") as client:
            return await client.request(method, path)

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("failed", "status", "answer"),
    [
        (None, 200, {"live": True, "why": None}),
        ("its disk failed", 503, {"live": False, "why": "its disk failed"}),
    ],
)
def test_a_process_that_failed_is_not_alive_and_says_why(
    failed: str | None, status: int, answer: dict[str, Any]
) -> None:
    told = asked("GET", "/healthz", failed=failed)
    assert (told.status_code, told.json()) == (status, answer)


@pytest.mark.parametrize(("why", "status"), [("", 200), ("nobody leads", 503)])
def test_readiness_names_the_process_and_what_stands_in_its_way(why: str, status: int) -> None:
    told = asked("GET", "/readyz", why=why)
    assert told.status_code == status
    assert told.json() == {
        "ready": not why,
        "node": "broker-0",
        "role": "broker",
        "why": [why] if why else [],
    }


def test_metrics_are_in_the_format_of_prometheus() -> None:
    told = asked("GET", "/metrics")
    assert told.headers["content-type"].startswith("text/plain; version=")
    assert told.text == "a_metric 1\n"


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/nowhere"])
def test_head_says_what_get_would_without_a_body(path: str) -> None:
    told, whole = asked("HEAD", path), asked("GET", path)
    assert (told.status_code, told.content) == (whole.status_code, b"")
    assert told.headers["content-length"] == str(len(whole.content))


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_changed_here(method: str) -> None:
    told = asked(method, "/healthz")
    assert (told.status_code, told.json()) == (405, {"why": ["only GET is served here"]})


def test_other_paths_say_which_there_are() -> None:
    for path in ("/", "/healthz/", "/HEALTHZ", "/metrics/x"):
        told = asked("GET", path)
        assert told.status_code == 404
        assert told.json() == {"why": ["here are /healthz, /readyz and /metrics"]}
