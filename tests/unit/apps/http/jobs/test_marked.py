"""Marked appends over HTTP against a naive server, which keeps every batch of a writer."""

from itertools import count

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

WITH_FIXTURES = settings(
    max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
_serials = count()
appends = st.tuples(
    st.sampled_from("qr"), st.integers(0, 1), st.integers(0, 1), st.integers(0, 2),
    st.sampled_from("xy"),
)  # fmt: skip


@WITH_FIXTURES
@given(st.lists(appends, max_size=12))
def test_each_batch_is_in_the_log_once_and_each_part_in_its_order(
    http: httpx.Client, sent: list[tuple[str, int, int, int, str]]
) -> None:
    log = f"marked-{next(_serials)}"
    http.post("/v1/logs", json={"name": log})
    path = f"/v1/logs/{log}/records"
    model: dict[tuple[str, int, int], list[tuple[str, int]]] = {}
    values: list[str] = []
    for writer, version, part, batch, value in sent:
        query = {"writer": writer, "version": version, "part": part, "batch": batch}
        answer = http.post(path, json={"records": [{"value": value}]}, params=query)
        told = answer.json()
        known = model.get((writer, version, part), [])
        if batch < len(known):
            first, position = known[batch]
            if first == value:
                assert (answer.status_code, told["repeated"]) == (200, True)
                assert told["position"] == position
            else:
                assert (answer.status_code, told["code"]) == (409, "part-differs")
        elif batch == len(known):
            assert (answer.status_code, told["repeated"]) == (201, False)
            assert told["position"] == len(values)
            model.setdefault((writer, version, part), []).append((value, len(values)))
            values.append(value)
        else:
            assert (answer.status_code, told["code"]) == (409, "part-gap")
    assert [each["value"] for each in http.get(path).json()["records"]] == values
    told = http.get(f"/v1/logs/{log}/writers").json()["writers"]
    counted = {
        (each["name"], int(version), int(part)): batches
        for each in told
        for version, parts in each["open"].items()
        for part, batches in parts.items()
    }
    assert counted == {key: len(batches) for key, batches in model.items()}
