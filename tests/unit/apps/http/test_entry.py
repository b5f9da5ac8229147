"""What every request passes: its name, its origin, its token, its size."""

import string

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anabranch import testing


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.sampled_from(string.printable), max_size=140).map(str.strip))
def test_a_request_keeps_its_name_if_it_may_stand_in_a_log(http: httpx.Client, name: str) -> None:
    usable = 1 <= len(name) <= 128 and all("!" <= each <= "~" for each in name)
    if any(each in "\r\n\x0b\x0c" for each in name):
        return
    answer = http.get("/healthz", headers={"X-Request-Id": name})
    assert (answer.headers["X-Request-Id"] == name) == usable
    assert len(answer.headers["X-Request-Id"]) >= 1


@pytest.mark.parametrize(
    ("headers", "served"),
    [
        ({}, True),
        ({"Host": "localhost"}, True),
        ({"Host": "LocalHost:99"}, True),
        ({"Host": "127.0.0.1"}, True),
        ({"Host": "[::1]:80"}, True),
        ({"Host": "evil.example"}, False),
        ({"Host": "localhost.evil.example"}, False),
        ({"Host": "127.0.0.1.evil.example:80"}, False),
        ({"Origin": "http://evil.example"}, False),
        ({"Origin": "null"}, False),
        ({"Host": "localhost", "Origin": "http://localhost"}, True),
        ({"Host": "localhost:1", "Origin": "http://localhost:2"}, False),
    ],
)
def test_a_page_from_elsewhere_can_not_use_its_readers_browser(
    http: httpx.Client, headers: dict[str, str], served: bool
) -> None:
    answer = http.get("/v1/logs", headers=headers)
    assert answer.is_success == served
    if not served:
        assert (answer.status_code, answer.json()["code"]) == (403, "foreign-origin")
    assert http.get("/healthz", headers=headers).is_success


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/nowhere", "no-such-path"),
        ("GET", "/v1/logs/a/b/c", "no-such-path"),
        ("PUT", "/v1/logs", "method-not-allowed"),
        ("DELETE", "/v1/logs/a/records", "method-not-allowed"),
        ("GET", "/v1/logs/nowhere", "unknown-log"),
        ("GET", "/v1/logs/%FF", "unknown-log"),
        ("GET", "/v1/logs/%1B[31m", "unknown-log"),
    ],
)
def test_a_wrong_address_is_a_problem_document(
    http: httpx.Client, method: str, path: str, code: str
) -> None:
    answer = http.request(method, path)
    told = answer.json()
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert (told["code"], told["status"]) == (code, answer.status_code)
    assert told["instance"] == f"urn:anabranch:request:{answer.headers['X-Request-Id']}"
    if code == "method-not-allowed":
        assert set(answer.headers["Allow"].split(", ")) <= {"GET", "POST", "PUT", "DELETE", "HEAD"}


def test_a_path_that_is_too_long_is_refused(http: httpx.Client) -> None:
    answer = http.get("/v1/logs", headers={f"X-{n}": "x" * 4_000 for n in range(9)})
    assert (answer.status_code, answer.json()["code"]) == (431, "headers-too-large")


@pytest.mark.parametrize("path", ["/v1/logs", "/v1/logs/x/records"])
def test_a_body_over_its_limit_is_refused_by_what_it_declares(
    http: httpx.Client, path: str
) -> None:
    answer = http.post(
        path, content=b" " * 20_000_000, headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, answer.json()["code"]) == (413, "body-too-large")
    assert answer.json()["facts"]["size"] == 20_000_000


def test_every_answer_forbids_to_be_kept(http: httpx.Client, service: testing.Server) -> None:
    for path in ("/", "/v1/logs", "/nowhere", "/metrics"):
        assert http.get(path).headers["Cache-Control"] == "no-store"
    assert service.http == str(http.base_url).rstrip("/")
