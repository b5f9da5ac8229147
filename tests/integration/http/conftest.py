"""The HTTP front over a running log in memory, asked by a client that isn't ours.

Over a log in the same process, and over frames and a pool of two brokers: `serving`, `shared` and
`served` give both by turns. `embedding` and `embedded` are the former alone, for what looks inside.

Whatever any test gets as a refusal is held against the problem document's rules and against what
OpenAPI says of the operation.
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

import httpx
import pytest
from msgspec.structs import replace
from tests.integration.gateways import gateway
from tests.integration.living import living
from tests.integration.pool import LIMITS, pooled

from anabranch.apps.http import build
from anabranch.apps.http.context import FrontSettings
from anabranch.apps.settings import Settings
from anabranch.apps.up import Embedded, Endpoint, serve
from anabranch.core.limits import Limits

PATIENCE_S = 30
ANYWHERE = {"no-such-path", "method-not-allowed"}


class Served:
    """A running log with its HTTP front, and a client of it."""

    _described: ClassVar[list[tuple[re.Pattern[str], dict[str, Any]]]] = []
    """The operations of each path, as OpenAPI has them. No setting changes them, and a server takes
    a tenth of a second to describe them: one is asked for all.
    """

    def __init__(
        self,
        address: str,
        token: str | None,
        embedded: Embedded | None = None,
        stop: Callable[[], object] = lambda: None,
    ) -> None:
        self.address = address
        self._embedded = embedded
        self.stop = stop
        self.url = f"http://{address}"
        self.client = httpx.Client(
            base_url=self.url,
            timeout=PATIENCE_S,
            verify=False,  # nothing here speaks TLS, and authorities take long to load
            headers=None if token is None else [(b"Authorization", f"Bearer {token}".encode())],
            event_hooks={"response": [self._check]},
        )

    @property
    def embedded(self) -> Embedded:
        assert self._embedded is not None, "only a log in the process can be looked into"
        return self._embedded

    @cached_property
    def openapi(self) -> dict[str, Any]:
        return self.client.get("/openapi.json").json()

    @property
    def _paths(self) -> list[tuple[re.Pattern[str], dict[str, Any]]]:
        if not Served._described:
            Served._described += [
                (re.compile(re.sub(r"\{\w+\}", "[^/]+", path)), operations)
                for path, operations in self.openapi["paths"].items()
            ]
        return Served._described

    def in_loop(self, call: Callable[[], object]) -> None:
        self.embedded.host.failed.get_loop().call_soon_threadsafe(call)

    def create(self, name: str = "orders", *values: str) -> str:
        assert self.client.post("/v1/logs", json={"name": name}).status_code == 201
        if values:
            self.append(name, *values)
        return name

    def append(self, log: str, *values: str, **headers: str) -> dict[str, Any]:
        body = {"records": [{"value": value} for value in values]}
        answer = self.client.post(f"/v1/logs/{log}/records", json=body, headers=headers)
        assert answer.is_success, answer.text
        return answer.json()

    def fork(self, parent: str, name: str, **more: Any) -> str:
        answer = self.client.post(f"/v1/logs/{parent}/forks", json={"name": name, **more})
        assert answer.status_code == 201, answer.text
        return answer.json()["name"]

    def values(self, log: str, **query: Any) -> list[str]:
        answer = self.client.get(f"/v1/logs/{log}/records", params={"limit": 10_000, **query})
        assert answer.status_code == 200, answer.text
        return [record["value"] for record in answer.json()["records"]]

    def gauge(self, name: str) -> float:
        """One of the broker's, as its metrics tell it now."""
        lines = self.client.get("/metrics").text.splitlines()
        told = next(line for line in lines if line.startswith(f"anabranch_broker_{name} "))
        return float(told.split()[1])

    def refusal(self, method: str, path: str, **more: Any) -> tuple[int, str]:
        answer = self.client.request(method, path, **more)
        return answer.status_code, answer.json()["code"]

    def _check(self, answer: httpx.Response) -> None:
        assert answer.headers["X-Request-Id"]
        if answer.request.url.path == "/openapi.json":
            return
        operation = self._operation(answer.request)
        if answer.is_success:
            assert operation is not None
            assert str(answer.status_code) in operation["responses"]
            return
        assert answer.headers["Content-Type"] == "application/problem+json"
        answer.read()
        told = json.loads(answer.content)
        assert told["status"] == answer.status_code
        assert told["type"] == f"urn:anabranch:problem:{told['code']}"
        assert told["title"]
        assert told["detail"]
        assert told["instance"].endswith(answer.headers["X-Request-Id"])
        assert ("Retry-After" in answer.headers) == (told["advice"] == "retry")
        if operation is None:
            assert told["code"] in ANYWHERE | {"unauthorized", "foreign-origin"}
        elif told["code"] not in ANYWHERE:
            documented = operation["responses"][str(answer.status_code)]["content"]
            assert told["code"] in documented["application/problem+json"]["examples"]

    def _operation(self, request: httpx.Request) -> dict[str, Any] | None:
        for path, operations in self._paths:
            if path.fullmatch(request.url.raw_path.decode().partition("?")[0]):
                return operations.get(request.method.lower())
        return None


@dataclass
class Event:
    name: str
    id: str | None
    data: dict[str, Any]


class Events:
    """Server-sent events, one by one, comments apart."""

    def __init__(self, answer: httpx.Response) -> None:
        self.status = answer.status_code
        self._lines = answer.iter_lines()

    def next(self) -> Event:
        name, id, data = "", None, ""
        for line in self._lines:
            field, _, value = line.partition(": ")
            match field:
                case "event":
                    name = value
                case "id":
                    id = value
                case "data":
                    data = value
                case "" if data:
                    return Event(name, id, json.loads(data))
                case _:
                    pass
        raise EOFError

    def pass_comment(self) -> None:
        """Return when the server has said that it is there, between two events."""
        if not any(line.startswith(":") for line in self._lines):
            raise EOFError

    def take(self, count: int) -> list[tuple[str, str | None, Any]]:
        """What each says in short: the position in its id, and the value delivered or the position
        told.
        """
        return [self._short(self.next()) for _ in range(count)]

    @staticmethod
    def _short(event: Event) -> tuple[str, str | None, Any]:
        resume_at = event.id and event.id.partition(":")[2]
        if event.name == "deliver":
            kind = "guess" if event.data["speculative"] else "final"
            return kind, resume_at, (event.data["position"], event.data["value"])
        return event.name, resume_at, next(iter(event.data.values()))


Serving = Callable[..., AbstractContextManager[Served]]
Subscribing = Callable[..., AbstractContextManager[Events]]


@contextmanager
def _serving(
    limits: Limits | None = None,
    front: FrontSettings | None = None,
    token: str | None = None,
    data: Path | None = None,
) -> Iterator[Served]:
    settings = Settings(
        data=str(data),
        memory=data is None,
        port=0,
        http_port=0,
        limits=limits or Limits(),
        token=token,
        cluster="here",
    )
    found: list[Any] = []

    def app(embedded: Embedded) -> Any:
        found.append(embedded)
        return build(embedded, front)

    async def live(ready: Callable[[], None], stop: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()

        def told(endpoint: Endpoint) -> None:
            assert endpoint.http is not None
            end = partial(loop.call_soon_threadsafe, stop.set)
            found.append(Served(endpoint.http, token, found[0], end))
            ready()

        await serve(settings, told, app=app, stop=stop)

    with living(live):
        served: Served = found[1]
        try:
            yield served
        finally:
            served.client.close()


@contextmanager
def _gated(
    limits: Limits | None = None,
    front: FrontSettings | None = None,
    token: str | None = None,
) -> Iterator[Served]:
    chosen = replace(limits or Limits(), alive_ms=LIMITS.alive_ms)
    with pooled(2, chosen) as pool, gateway(pool.url, chosen, front, token) as found:
        served = Served(found.address, token, stop=found.stop)
        try:
            yield served
        finally:
            served.client.close()


_BACKENDS: dict[str, Serving] = {"embedded": _serving, "gateway": _gated}


@pytest.fixture(scope="session", params=list(_BACKENDS))
def serving(request: pytest.FixtureRequest) -> Serving:
    return _BACKENDS[request.param]


@pytest.fixture(scope="session")
def embedding() -> Serving:
    return _serving


@pytest.fixture(scope="module")
def shared(serving: Serving) -> Iterator[Served]:
    """One for all tests of a file that don't mind each other."""
    with serving() as served:
        yield served


@pytest.fixture
def served(serving: Serving) -> Iterator[Served]:
    with serving() as served:
        yield served


@pytest.fixture
def embedded() -> Iterator[Served]:
    with _serving() as served:
        yield served


@pytest.fixture(params=["embedded", "gateway"])
def fronted(request: pytest.FixtureRequest, embedded: Served) -> Iterator[Served]:
    """A running `up`, by its own front, or by a gateway that stands before it as before a pool."""
    if request.param == "embedded":
        yield embedded
        return
    log = embedded.embedded
    with gateway(f"anabranch://{log.frames}") as found:
        served = Served(found.address, None, log)
        try:
            yield served
        finally:
            served.client.close()


@pytest.fixture(scope="session")
def subscribing() -> Subscribing:
    @contextmanager
    def subscribed(
        served: Served, log: str, headers: dict[str, str] | None = None, **query: Any
    ) -> Iterator[Events]:
        path = f"/v1/logs/{log}/subscribe"
        with served.client.stream("GET", path, params=query, headers=headers) as answer:
            assert answer.headers["Content-Type"].startswith("text/event-stream")
            yield Events(answer)

    return subscribed
