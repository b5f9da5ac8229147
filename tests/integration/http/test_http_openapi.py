"""What OpenAPI says: all there is, with examples and every refusal; and what HTTP costs to have."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any


def operations(shared: Any) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in shared.openapi["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def references(part: Any) -> Iterator[str]:
    match part:
        case {"$ref": str(reference)}:
            yield reference
        case dict():
            for each in part.values():
                yield from references(each)
        case list():
            for each in part:
                yield from references(each)
        case _:
            pass


def test_every_reference_leads_somewhere(shared: Any) -> None:
    found = set(references(shared.openapi))
    assert len(found) > 20
    for reference in found:
        assert (
            reference.removeprefix("#/components/schemas/")
            in (shared.openapi["components"]["schemas"])
        )


def test_every_operation_is_named_explained_and_shows_its_refusals(shared: Any) -> None:
    names = [operation["operationId"] for _, _, operation in operations(shared)]
    assert len(names) == len(set(names)) > 20
    for method, path, operation in operations(shared):
        assert operation["summary"]
        refusals = {
            status: response
            for status, response in operation["responses"].items()
            if int(status) >= 400
        }
        assert {"401", "403", "422", "429", "500", "503", "504"} <= refusals.keys(), path
        assert ("413" in refusals) == (method in {"post", "put", "delete"})
        by_query = path.endswith("/redeem") or (path, method) == ("/v1/logs", "get")
        of_plan = "{plan}" in path and method != "delete"
        assert ("410" in refusals) == ("{log}" in path or of_plan or by_query)
        for status, response in refusals.items():
            content = response["content"]["application/problem+json"]
            assert content["schema"] == {"$ref": "#/components/schemas/Problem"}
            assert content["examples"], (path, status)
            for code, example in content["examples"].items():
                assert example["value"]["code"] == code
                assert example["value"]["status"] == int(status)
        success = [int(status) for status in operation["responses"] if int(status) < 300]
        assert success
        for parameter in operation.get("parameters", []):
            assert parameter["schema"]


def test_nothing_is_left_of_the_frameworks_own_refusals(shared: Any) -> None:
    schemas = shared.openapi["components"]["schemas"]
    assert "HTTPValidationError" not in schemas
    assert schemas["Problem"]["required"] == [
        "type",
        "title",
        "status",
        "detail",
        "instance",
        "code",
        "advice",
        "facts",
        "faults",
    ]


def test_the_first_page_leads_to_all_others(embedded: Any) -> None:
    welcome = embedded.client.get("/").json()
    assert welcome["cluster"] == "here"
    for link in welcome["links"].values():
        assert embedded.client.get(link).status_code == 200
    census = embedded.client.get("/v1/census").json()
    assert (census["cluster"], census["logs"]) == ("here", 0)
    metrics = embedded.client.get("/metrics")
    assert metrics.headers["Content-Type"].startswith("text/plain; version=")
    assert "anabranch_broker_appends_total" in metrics.text


def test_a_server_without_http_does_not_pay_for_it() -> None:
    seen = "import sys, anabranch.apps.up; print('fastapi' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", seen], check=True, capture_output=True, text=True)
    assert told.stdout == "False\n"
