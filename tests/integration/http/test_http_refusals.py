"""What HTTP is refused with: every kind of bad input, and always as a problem document."""

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx
import pytest

from anabranch.apps import process
from anabranch.apps.http.context import FrontSettings
from anabranch.core.errors import StorageFailed, StorageFull
from anabranch.core.limits import Limits
from anabranch.shell.journal.memory import MemoryJournal

JSON = {"Content-Type": "application/json"}
NUMBERS = (
    "x",
    "",
    "-1",
    "1.5",
    "1e3",
    "NaN",
    "null",
    "0x10",
    str(1 << 53),
    str(10**40),
    "٣x",
    "\0",
)
TEXTS = ("\0", "a b", "%", "💥", "x" * 2_000, "'; --", "../..")
PLAN = "1-0123456789abcdef"
SLICE = {"object": "here/data/00000001/0000000000001", "offset": 0, "length": 1, "seal": "0" * 16}
JUNK = (None, True, -1, 1.5, 1e300, 1 << 53, 10**30, "", "x", "\0", [], {}, [[]], {"a": 1})


def test_unknown_paths_and_methods(shared: Any) -> None:
    for path in (
        "/nope",
        "/v1",
        "/v1/logs/",
        "/v1//logs",
        "/v1/logs/a/b",
        "/v1/logs/a%2Fb",
        "/docs",
    ):
        assert shared.refusal("GET", path)[0] == 404, path
    answer = shared.client.request("PATCH", "/v1/logs")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, POST")
    answer = shared.client.request("PUT", "/v1/logs/a/cursors/b/")
    assert answer.json()["code"] == "no-such-path"
    assert httpx.head(f"{shared.url}/v1/logs").status_code == 405
    assert shared.client.options("/v1/logs").status_code == 405


def test_a_misspelt_parameter_is_not_passed_over(shared: Any) -> None:
    log = shared.create("misspelt", "a", "b")
    answer = shared.client.get(f"/v1/logs/{log}/records", params={"form": 1})
    assert (answer.status_code, answer.json()["facts"]["what"]) == (422, "query.form")
    assert "from" in answer.json()["detail"]


def test_bad_input_in_any_parameter_is_the_callers_mistake(shared: Any) -> None:
    """Every parameter of every operation, as OpenAPI lists them."""
    log = shared.create("fuzzed", "a")
    tried = 0
    for path, operations in shared.openapi["paths"].items():
        for method, operation in operations.items():
            for parameter in operation.get("parameters", []):
                for value in NUMBERS if _is_number(parameter) else TEXTS:
                    if parameter["in"] == "header" and not (
                        value.isascii() and value.isprintable()
                    ):
                        continue
                    answer = _ask(shared.client, method, path, log, parameter, value)
                    assert answer.status_code < 500, (method, path, parameter["name"], value)
                    if _is_number(parameter):
                        assert answer.json()["code"] == "bad-request"
                    tried += 1
    assert tried > 300


def _is_number(parameter: dict[str, Any]) -> bool:
    schema = parameter["schema"]
    return any(each.get("type") == "integer" for each in (schema, *schema.get("anyOf", [])))


def _ask(
    client: httpx.Client, method: str, path: str, log: str, parameter: dict[str, Any], value: str
) -> httpx.Response:
    names = {"log": log, "other": log, "cursor": "c", "plan": PLAN, "writer": "w"}
    query: dict[str, str] = {"at": "0"} if path.endswith("/positions") else {}
    headers = {"Deadline-Ms": "10000"}
    match parameter["in"]:
        case "path":
            names[parameter["name"]] = value
        case "query":
            query[parameter["name"]] = value
        case _:
            headers[parameter["name"]] = value
    if parameter["name"] == "Producer-Sequence":
        headers["Producer-Id"] = "1"
    for name, given in names.items():
        path = path.replace(f"{{{name}}}", _quoted(given))
    if path.endswith("/subscribe") and not _is_number(parameter):
        query["from"] = str(1 << 52)
    return client.request(method, path, params=query, headers=headers)


def _quoted(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode()) or "%20"


def test_bad_input_in_any_field_is_the_callers_mistake(shared: Any) -> None:
    """Every field of every body, as OpenAPI describes them, and bodies that are something else."""
    log = shared.create("fielded", "a")
    schemas = shared.openapi["components"]["schemas"]
    tried = 0
    for method, path, schema in _bodies(shared.openapi, schemas):
        address = path.replace("{log}", log).replace("{cursor}", "c")
        address = address.replace("{plan}", PLAN).replace("{writer}", "w")
        for body in _broken(schema, schemas):
            content = json.dumps(body).encode()
            answer = shared.client.request(method, address, content=content, headers=JSON)
            assert answer.status_code < 500, (path, body)
            tried += 1
        for content in (
            b"{",
            b"\xff",
            b'{"a": 1} x',
            b"[" * 30_000,
            b'{"name": NaN}',
            b"1",
            b'"x"',
        ):
            answer = shared.client.request(method, address, content=content, headers=JSON)
            assert answer.status_code in (400, 422), (path, content[:10])
    assert tried > 200


def _bodies(
    openapi: dict[str, Any], schemas: dict[str, Any]
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, operations in openapi["paths"].items():
        for method, operation in operations.items():
            content = operation.get("requestBody", {}).get("content", {})
            if "application/json" in content:
                schema = content["application/json"]["schema"]
                options = schema.get("anyOf", [schema])
                reference = next(each["$ref"] for each in options if "$ref" in each)
                yield method, path, schemas[reference.rpartition("/")[2]]


def _broken(schema: dict[str, Any], schemas: dict[str, Any]) -> Iterator[dict[str, Any]]:
    valid: dict[str, Any] = {"name": "f", "before": 0, "position": 0, "receipt": "1.0.0"}
    valid["records"] = [{"value": "x"}]
    valid |= {"slices": [SLICE], "version": 1, "parts": {}}
    known = {name: valid[name] for name in schema["properties"] if name in valid}
    for name in schema["properties"]:
        for junk in JUNK:
            yield {**known, name: junk}
    yield {**known, "unheard-of": 1}
    if "slices" in known:
        for name in schemas["SliceIn"]["properties"]:
            for junk in JUNK:
                yield {"slices": [{**SLICE, name: junk}]}
    if "parts" in known:
        for junk in JUNK:
            yield {**known, "parts": {"0": junk}}
            yield {**known, "parts": {str(junk): 1}}
    if "records" in known:
        for name in schemas["RecordIn"]["properties"]:
            for junk in JUNK:
                yield {"records": [{"value": "x", name: junk}]}


def test_bodies_of_another_kind_are_refused_unread(shared: Any) -> None:
    post = shared.refusal
    assert post("POST", "/v1/logs", data={"name": "x"}) == (415, "unsupported-media")
    assert post("POST", "/v1/logs", content=b"{}") == (415, "unsupported-media")
    packed = {**JSON, "Content-Encoding": "gzip"}
    assert post("POST", "/v1/logs", content=b"x", headers=packed) == (415, "unsupported-media")
    raw = {"Content-Type": "application/octet-stream"}
    assert post("POST", "/v1/logs", content=b"x", headers=raw) == (415, "unsupported-media")
    assert post("POST", "/v1/logs/x/promote", data={"a": "b"}) == (415, "unsupported-media")
    utf8 = {"Content-Type": "Application/JSON; charset=utf-8"}
    body = b'{"name": "utf8"}'
    assert shared.client.post("/v1/logs", content=body, headers=utf8).status_code == 201


def test_bodies_over_the_limit_are_refused_before_they_are_read(shared: Any) -> None:
    large = b" " * 70_000
    refusal = (413, "body-too-large")
    assert shared.refusal("POST", "/v1/logs", content=large, headers=JSON) == refusal
    chunked = iter([large[:30_000]] * 4)
    assert shared.refusal("POST", "/v1/logs", content=chunked, headers=JSON) == refusal
    host, port = shared.address.split(":")
    with socket.create_connection((host, int(port)), timeout=20) as raw:
        raw.sendall(
            b"POST /v1/logs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 99999999999\r\n\r\n"
        )
        assert raw.recv(1_000).startswith(b"HTTP/1.1 413 ")


def test_headers_over_the_limit_are_refused(shared: Any) -> None:
    headers = {"X-Long": "x" * 40_000}
    assert shared.refusal("GET", "/v1/logs", headers=headers) == (431, "headers-too-large")
    query = {"prefix": "x" * 40_000}
    assert shared.refusal("GET", "/v1/logs", params=query) == (431, "headers-too-large")


def test_a_body_that_does_not_come_is_not_waited_for(serving: Any) -> None:
    with serving(front=FrontSettings(body_ms=50)) as served:
        host, port = served.address.split(":")
        with socket.create_connection((host, int(port)), timeout=20) as raw:
            raw.sendall(
                b"POST /v1/logs HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Type: application/json\r\nContent-Length: 10\r\n\r\n{"
            )
            assert raw.recv(4_096).startswith(b"HTTP/1.1 408 ")


def test_bodies_in_hand_and_requests_at_once_are_bounded(serving: Any) -> None:
    with serving(Limits(queue_bytes_max=1_000)) as served:
        served.create()
        path, body = "/v1/logs/orders/records", {"records": [{"value": "x" * 1_000}]}
        answer = served.client.post(path, json=body)
        assert (answer.status_code, answer.json()["facts"]["setting"]) == (429, "queue_bytes_max")
        assert served.append("orders", "x" * 500)["position"] == 0
    with serving(Limits(connections_max=1)) as served:
        served.create()
        with httpx.stream("GET", f"{served.url}/v1/logs/orders/subscribe?from=0"):
            answer = httpx.get(f"{served.url}/v1/logs")
            assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
            assert answer.json()["facts"]["setting"] == "connections_max"


def test_with_a_token_only_who_shows_it_is_served(serving: Any) -> None:
    with serving(token="sécret") as served:
        served.create()
        bare = httpx.Client(base_url=served.url)
        for given in ("", "Bearer", "Bearer secret", "Basic sécret", "sécret", "Bearer sécret x"):
            headers = [(b"Authorization", given.encode())]
            for path in ("/", "/v1/logs", "/metrics", "/openapi.json", "/nope"):
                answer = bare.get(path, headers=headers)
                assert answer.status_code == 401
                assert answer.headers["WWW-Authenticate"].startswith("Bearer")
                assert answer.json()["code"] == "unauthorized"
        right = [(b"Authorization", "bearer sécret".encode()), (b"Origin", b"https://else.org")]
        assert bare.get("/v1/logs", headers=right).status_code == 200
        assert bare.get("/healthz").json() == {"status": "ok"}
        assert bare.get("/readyz").json() == {"status": "ok"}
        assert served.openapi["security"] == [{"bearer": []}]
        bare.close()


def test_without_a_token_no_foreign_page_is_served(shared: Any) -> None:
    for headers in (
        {"Origin": "https://elsewhere.org"},
        {"Origin": "null"},
        {"Host": "rebound.elsewhere.org:7421"},
        {"Host": "localhost.elsewhere.org"},
        {"Host": "elsewhere.org", "Origin": "http://elsewhere.org"},
    ):
        assert shared.refusal("GET", "/v1/logs", headers=headers) == (403, "foreign-origin")
    for headers in (
        {"Origin": shared.url},
        {"Host": "localhost:1"},
        {"Host": "LOCALHOST"},
        {"Host": "[::1]:7421", "Origin": "http://[::1]:7421"},
        {"Host": "127.0.0.1"},
    ):
        assert shared.client.get("/v1/logs", headers=headers).status_code == 200


def test_a_request_keeps_the_id_that_it_came_with(shared: Any) -> None:
    answer = shared.client.get("/nope", headers={"X-Request-Id": "mine-7"})
    assert answer.headers["X-Request-Id"] == "mine-7"
    assert answer.json()["instance"] == "urn:anabranch:request:mine-7"
    odd = shared.client.get("/", headers={"X-Request-Id": "x" * 200})
    assert odd.headers["X-Request-Id"] != "x" * 200
    assert odd.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("error", "status"),
    [(StorageFull("the journal"), 507), (StorageFailed("the journal", "EIO"), 503)],
)
def test_a_journal_that_cannot_write_is_told_and_nothing_is_changed(
    embedding: Any, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    with embedding() as served:
        with monkeypatch.context() as broken:

            def fail(*_: object) -> int:
                raise error

            broken.setattr(MemoryJournal, "append", fail)
            answer = served.client.post("/v1/logs", json={"name": "orders"})
            assert (answer.status_code, answer.headers["Retry-After"]) == (status, "1")
        served.create("orders")


def test_a_log_that_stopped_is_neither_alive_nor_waited_for(
    embedding: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def until_stopped(stop: asyncio.Event, _: object) -> None:
        """As long as it takes to ask: the process would end by itself."""
        await stop.wait()

    monkeypatch.setattr(process, "until_told", until_stopped)
    with embedding() as served:
        failed = served.embedded.host.failed
        served.client.get("/")
        served.in_loop(lambda: failed.set_result("broker-0 failed"))
        answers = [served.client.get(path) for path in ("/healthz", "/readyz", "/v1/logs")]
        assert {answer.status_code for answer in answers} == {503}
        assert {answer.json()["code"] for answer in answers} == {"unavailable"}


def test_our_own_failure_is_told_without_its_particulars(
    embedding: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with embedding() as served:
        served.client.get("/")

        def fail() -> bytes:
            raise ZeroDivisionError("a secret")

        monkeypatch.setattr(served.embedded.__class__, "metrics", property(lambda _: fail))
        answer = served.client.get("/metrics")
        assert (answer.status_code, answer.json()["code"]) == (500, "error")
        assert "secret" not in answer.text
    assert "a secret" in caplog.text


def test_streams_do_not_keep_a_server_from_stopping(serving: Any) -> None:
    with serving() as served:
        served.create("orders", "a")
        path = "/v1/logs/orders/subscribe?from=0"
        with served.client.stream("GET", path) as answer:
            lines = answer.iter_lines()
            assert next(lines) == "event: deliver"
            served.stop()
            with suppress(httpx.RemoteProtocolError):
                assert [line for line in lines if line.startswith("event")] == []
