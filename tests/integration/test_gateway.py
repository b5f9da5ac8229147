"""HTTP before a pool: what one process would answer, whichever broker dies meanwhile."""

import json
import os
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.certificates import Issuer
from tests.integration.gateways import gateway
from tests.integration.pool import PATIENCE_S, Pool, pooled

from anabranch.core.errors import Unauthorized
from anabranch.core.limits import Limits
from anabranch.shell.net.tls import TlsSettings


@pytest.fixture
def pool() -> Iterator[Pool]:
    with pooled(3) as pool:
        yield pool


@pytest.fixture
def http(pool: Pool) -> Iterator[httpx.Client]:
    with (
        gateway(pool.url) as found,
        httpx.Client(base_url=f"http://{found.address}", timeout=PATIENCE_S) as client,
    ):
        yield client


def created(http: httpx.Client, name: str = "orders") -> dict[str, Any]:
    answer = http.post("/v1/logs", json={"name": name})
    assert answer.status_code == 201, answer.text
    return answer.json()


def append(http: httpx.Client, value: str, **headers: str) -> dict[str, Any]:
    body = {"records": [{"value": value}]}
    answer = http.post("/v1/logs/orders/records", json=body, headers=headers)
    assert answer.is_success, answer.text
    return answer.json()


def values(http: httpx.Client, log: str = "orders") -> list[str]:
    answer = http.get(f"/v1/logs/{log}/records", params={"limit": 10_000})
    return [record["value"] for record in answer.json()["records"]]


def test_the_gateway_says_who_it_is_and_who_its_brokers_are(pool: Pool, http: httpx.Client) -> None:
    assert http.get("/").json()["cluster"] == "pool"
    found = http.get("/v1/brokers").json()["brokers"]
    assert [each["address"] for each in found] == [broker.address for broker in pool.brokers]
    made = created(http)
    assert made["address"] == next(
        each["address"] for each in http.get("/v1/brokers").json()["brokers"] if each["roots"]
    )
    own = http.post("/v1/logs/orders/forks", json={"name": "own", "exclusive": True}).json()
    assert own["address"] != made["address"]


@pytest.mark.parametrize("keyed", [False, True])
def test_appends_go_on_over_the_death_of_each_broker(
    pool: Pool, http: httpx.Client, keyed: bool
) -> None:
    created(http)
    count = 0
    for broker in (*pool.brokers, *pool.brokers):
        for each in range(4):
            if each == 2:
                pool.kill(broker)
            key = {"Idempotency-Key": str(count)} if keyed else {}
            assert append(http, str(count), **key)["position"] == count
            count += 1
        pool.revive(broker)
    assert values(http) == [str(number) for number in range(count)]
    if keyed:
        assert append(http, "3", **{"Idempotency-Key": "3"})["position"] == 3


def test_requests_at_a_dying_broker_are_answered_by_another(pool: Pool, http: httpx.Client) -> None:
    made = created(http)
    for number in range(10):
        append(http, str(number))
    broker = pool.at(made["address"])
    found: list[int] = []

    def work(number: int) -> None:
        with httpx.Client(base_url=http.base_url, timeout=PATIENCE_S) as mine:
            found.extend(append(mine, f"{number}.{each}")["position"] for each in range(10))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    pool.kill(broker)
    for thread in threads:
        thread.join(PATIENCE_S)
    assert sorted(found) == list(range(10, 50))
    told = values(http)
    assert len(told) == len(set(told)) == 50


def test_a_subscription_goes_on_elsewhere(pool: Pool, http: httpx.Client) -> None:
    made = created(http)
    append(http, "a")
    with http.stream("GET", "/v1/logs/orders/subscribe", params={"from": 0}) as answer:
        lines = (line for line in answer.iter_lines() if line.startswith("data: "))
        assert json.loads(next(lines)[6:])["value"] == "a"
        pool.kill(pool.at(made["address"]))
        append(http, "b")
        assert json.loads(next(lines)[6:])["value"] == "b"


def test_without_brokers_it_is_alive_and_not_ready_and_then_ready_again(
    pool: Pool, http: httpx.Client
) -> None:
    created(http)
    assert http.get("/readyz").status_code == 200
    for broker in pool.brokers:
        pool.kill(broker)
    while "anabranch_gateway_brokers_connected 0.0" not in http.get("/metrics").text:
        pass
    assert http.get("/healthz").status_code == 200
    for broker in pool.brokers:
        while broker.address not in (told := http.get("/readyz").json())["detail"]:
            pass
        assert (told["code"], told["status"]) == ("unavailable", 503)
    late = http.get("/v1/logs/orders", headers={"Deadline-Ms": "300"})
    assert late.status_code == 503
    assert late.json()["advice"] == "retry"
    for broker in pool.brokers:
        pool.revive(broker)
    assert append(http, "back")["position"] == 0
    assert http.get("/readyz").status_code == 200


def test_a_blocked_log_refuses_when_the_wait_is_over_and_then_takes_appends_again(
    http: httpx.Client,
) -> None:
    created(http)
    assert http.post("/v1/logs/orders/forks", json={"name": "view"}).status_code == 201
    promotable = {"name": "try", "promotable": True}
    assert http.post("/v1/logs/orders/forks", json=promotable).status_code == 201
    body = {"records": [{"value": "x"}]}
    for _ in range(2):
        path = "/v1/logs/orders--view/records"
        refused = http.post(path, json=body, params={"wait_ms": 50})
        assert (refused.status_code, refused.json()["code"]) == (409, "append-blocked")
    assert http.post("/v1/logs/orders--try/squash").status_code == 204
    done = http.post("/v1/logs/orders--view/records", json=body)
    assert done.status_code == 201
    assert values(http, "orders--view") == ["x"]


def test_limits_of_its_own_are_kept(pool: Pool) -> None:
    with gateway(pool.url, Limits(connections_max=1), token="mine") as found:
        url = f"http://{found.address}"
        assert httpx.get(f"{url}/v1/logs").status_code == 401
        mine = {"Authorization": "Bearer mine"}
        assert httpx.get(f"{url}/v1/logs", headers=mine).status_code == 200
        assert httpx.get(f"{url}/healthz").status_code == 200


def test_brokers_that_wont_have_it_end_it_with_the_reason() -> None:
    with pooled(1, token="right") as pool:
        with pytest.raises(Unauthorized), gateway(pool.url):
            pass
        with gateway(pool.url, service_token="right") as found:
            assert httpx.get(f"http://{found.address}/readyz").status_code == 200


def test_over_tls_its_probes_stay_plain(pool: Pool, tmp_path: Path) -> None:
    issuer = Issuer(tmp_path / "authority")
    files = issuer.issue()
    shown = TlsSettings(cert=files.cert, key=files.key)
    with gateway(pool.url, tls=shown, probe_port=0) as found:
        trusted = ssl.create_default_context(cafile=files.ca)
        url = f"https://{found.address}"
        with httpx.Client(base_url=url, verify=trusted, timeout=PATIENCE_S) as http:
            created(http)
            assert append(http, "a")["position"] == 0
            assert http.get("/readyz").status_code == 200
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://{found.address}/healthz", timeout=PATIENCE_S)
        for path in ("healthz", "readyz", "metrics"):
            assert httpx.get(f"http://{found.probes}/{path}").status_code == 200
        renewed = Issuer(tmp_path / "renewed")
        for old, new in zip((files.cert, files.key), _leaf(renewed.issue()), strict=True):
            Path(old).write_text(new)
        fresh = ssl.create_default_context(cafile=str(renewed.folder / "ca"))
        assert httpx.get(f"{url}/healthz", verify=fresh).status_code == 200


def _leaf(files: TlsSettings) -> tuple[str, str]:
    return Path(files.cert).read_text(), Path(files.key).read_text()


def test_the_command_serves_until_it_is_told_to_end(pool: Pool, tmp_path: Path) -> None:
    announced = tmp_path / "gateway"
    command = [sys.executable, "-m", "anabranch.cli.main", "gateway", "--service", pool.url]
    options = ["--http-port", "0", "--announce", str(announced)]
    process = subprocess.Popen(
        [*command, *options],
        stderr=subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if "ANABRANCH" not in name},
    )
    try:
        while not announced.exists():
            assert process.poll() is None
        address = json.loads(announced.read_text())["address"]
        with httpx.Client(base_url=f"http://{address}", timeout=PATIENCE_S) as http:
            created(http)
            assert append(http, "a")["position"] == 0
        process.send_signal(signal.SIGTERM)
        _, logged = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, logged
        assert not announced.exists()
    finally:
        process.kill()
        process.communicate()


def test_without_any_broker_at_the_start_the_command_says_why(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "anabranch.cli.main", "gateway", "--http-port", "0"]
    options = ["--service", "anabranch://127.0.0.1:1", "--patience-ms", "300"]
    done = subprocess.run(
        [*command, *options], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 4
    assert "127.0.0.1:1" in done.stderr
