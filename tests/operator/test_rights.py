"""A real API server says who clients are and what they may do, to brokers and to a gateway."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.integration.gateways import gateway
from tests.integration.living import PATIENCE_S
from tests.integration.pool import Pool, pooled
from tests.kubernetes.api_server import ApiServer, Rule
from tests.kubernetes.control_plane import ControlPlane

import anabranch
from anabranch.client.bolt.sync_log import Log
from anabranch.client.session.settings import Settings
from anabranch.client.sync import Service
from anabranch.core.errors import Forbidden, Unauthenticated, Unavailable
from anabranch.shell.authority.settings import AuthMode, AuthSettings

GROUP = ["anabranch.dev"]
AUDIENCE = ["anabranch"]
EVERYTHING = [
    Rule(
        ["get", "list", "create", "update", "delete", "append", "read", "fork", "promote", "trim"],
        GROUP,
        ["logs", "forks"],
    ),
    Rule(["update"], GROUP, ["brokerpools"]),
]
REVIEWS = [
    Rule(["create"], ["authentication.k8s.io"], ["tokenreviews"]),
    Rule(["create"], ["authorization.k8s.io"], ["subjectaccessreviews"]),
]


@dataclass(frozen=True)
class Town:
    """A service whose brokers ask an API server, and people in namespaces of its."""

    server: ApiServer
    home: str
    folder: Path

    @property
    def auth(self) -> AuthSettings:
        return AuthSettings(
            mode=AuthMode.KUBERNETES,
            server=self.server.url,
            folder=str(self.folder),
            allow_ms=1_000,
            deny_ms=1_000,
            deadline_ms=10_000,
        )

    def person(self, name: str, *rules: Rule, namespace: str = "") -> str:
        """A token of somebody who may do that, at home or elsewhere."""
        return self.server.service_account(namespace or self.home, name, rules, audiences=AUDIENCE)

    def user(self, name: str, namespace: str = "") -> str:
        return f"system:serviceaccount:{namespace or self.home}:{name}"


def settle(server: ApiServer, folder: Path) -> Town:
    """With an account for brokers that may review, and no more."""
    home = server.namespace("home")
    folder.mkdir()
    token = server.service_account(home, "broker", everywhere=REVIEWS)
    (folder / "token").write_text(token)
    (folder / "namespace").write_text(home)
    (folder / "ca.crt").write_bytes(server.ca.read_bytes())
    return Town(server, home, folder)


@pytest.fixture
def town(api_server: ApiServer, tmp_path: Path) -> Town:
    return settle(api_server, tmp_path / "account")


@pytest.fixture
def pool(town: Town) -> Iterator[Pool]:
    with pooled(2, auth=town.auth) as pool:
        yield pool


def connect(pool: Pool, token: str) -> Service:
    settings = Settings(token=token, timeout_ms=round(PATIENCE_S * 1_000))
    return anabranch.connect(pool.url, timeout=PATIENCE_S, settings=settings)


def test_whoever_has_no_token_for_us_isnt_let_in(pool: Pool, town: Town) -> None:
    for_others = town.server.service_account(town.home, "other", audiences=["somebody-else"])
    for token in ("", "nonsense", for_others):
        with pytest.raises(Unauthenticated, match="kubectl create token"):
            connect(pool, token)


def test_each_does_what_its_role_says_and_is_told_what_it_lacks(pool: Pool, town: Town) -> None:
    admin = town.person("admin", *EVERYTHING)
    writer = town.person("writer", Rule(["append"], GROUP, ["logs"], ["orders"]))
    reader = town.person("reader", Rule(["read"], GROUP, ["logs", "forks"]))
    nobody = town.person("nobody")
    with connect(pool, admin) as service:
        for name in ("orders", "invoices"):
            service.create(name).append(b"first")
    with connect(pool, writer) as service:
        orders = service.log("orders", engine="bolt")
        assert orders.append(b"second").position == 1
        with pytest.raises(Forbidden) as refused:
            list(orders.read(0))
        assert refused.value.facts == {
            "user": town.user("writer"),
            "verb": "read",
            "resource": "logs",
            "name": "orders",
            "namespace": town.home,
        }
        with pytest.raises(Forbidden, match="may not get logs invoices"):
            service.log("invoices")
        with pytest.raises(Forbidden, match="may not list logs"):
            list(service.logs())
        with pytest.raises(Forbidden, match="may not create logs more"):
            service.create("more")
        with pytest.raises(Forbidden, match="may not fork logs orders"):
            orders.sfork("try")
    with connect(pool, reader) as service:
        assert [each.value for each in service.log("orders").read(0)] == [b"first", b"second"]
        with pytest.raises(Forbidden, match="may not append logs invoices"):
            service.log("invoices").append(b"third")
    with connect(pool, nobody) as service, pytest.raises(Forbidden, match="may not get logs"):
        service.log("orders")


def test_a_fork_that_a_resource_declares_has_its_rights_there(pool: Pool, town: Town) -> None:
    admin = town.person("admin", *EVERYTHING)
    team = town.server.namespace("team")
    rules = [Rule(["append", "promote"], GROUP, ["forks"], ["what-if"])]
    agent = town.person("agent", *rules, namespace=team)
    owner = f"k8s/{team}/Fork/what-if/6f9619ff"
    declarer = town.person("declarer", Rule(["create"], GROUP, ["forks"]), namespace=team)
    with connect(pool, admin) as service:
        orders = service.create("orders")
        with pytest.raises(Forbidden, match=f"may not create forks what-if in namespace {team}"):
            orders.cfork("what-if", promotable=True, owner=owner)
        orders.cfork("mine")
    fork = Rule(["fork"], GROUP, ["logs"])
    town.server.ask(
        "POST",
        f"/apis/rbac.authorization.k8s.io/v1/namespaces/{town.home}/roles",
        {"metadata": {"name": "forker"}, "rules": [fork.as_manifest()]},
    )
    _bind(town, town.home, "forker", "declarer", team)
    with connect(pool, declarer) as service:
        service.log("orders", engine="bolt").cfork("what-if", promotable=True, owner=owner)
    with connect(pool, agent) as service:
        own = service.log("orders--what-if", engine="bolt")
        own.append(b"tried")
        with pytest.raises(Forbidden, match="may not get forks orders--mine"):
            service.log("orders--mine", engine="bolt")
        own.promote()
    with connect(pool, admin) as service:
        assert service.log("orders").tail() == 1


def _bind(town: Town, namespace: str, role: str, account: str, home: str) -> None:
    subject = {"kind": "ServiceAccount", "name": account, "namespace": home}
    told = {
        "metadata": {"name": f"{role}-{account}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
        "subjects": [subject],
    }
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"
    town.server.ask("POST", path, told)


def test_a_right_that_is_taken_away_ends_appends_and_subscriptions(pool: Pool, town: Town) -> None:
    admin = town.person("admin", *EVERYTHING)
    agent = town.person("agent", Rule(["append", "read"], GROUP, ["logs"]))
    roles = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{town.home}/rolebindings"
    with connect(pool, admin) as service:
        service.create("orders")
    with connect(pool, agent) as service:
        orders = service.log("orders", engine="bolt")
        orders.append(b"a")
        with orders.subscribe(0) as subscription:
            events = iter(subscription)
            assert next(events)
            town.server.ask("DELETE", f"{roles}/agent")
            with pytest.raises(Forbidden, match="may not read logs orders"):
                list(events)
        with pytest.raises(Forbidden, match="may not append logs orders"):
            append_for_ever(orders)


def append_for_ever(log: Log) -> None:
    while True:
        log.append(b"again")


def test_while_the_api_server_is_away_whoever_was_allowed_goes_on(
    own_api_server: ControlPlane, tmp_path: Path
) -> None:
    town = settle(own_api_server.api, tmp_path / "account")
    with pooled(1, auth=town.auth) as pool:
        admin = town.person("admin", *EVERYTHING)
        late = town.person("late", *EVERYTHING)
        with connect(pool, admin) as service:
            orders = service.create("orders")
            orders.append(b"a")
            own_api_server.servers["kube-apiserver"].kill()
            failed = pool.wardens[0].counters.failed
            while pool.wardens[0].counters.failed == failed:
                orders.append(b"b")
            settings = Settings(token=late)
            with pytest.raises(Unavailable):
                anabranch.connect(pool.url, timeout=1.0, settings=settings)
            own_api_server.servers["kube-apiserver"].start()
            with connect(pool, late) as other:
                other.log("orders").append(b"c")


def test_a_gateway_asks_for_each_of_its_clients(pool: Pool, town: Town, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(town.person("gateway", *EVERYTHING))
    admin = town.person("admin", *EVERYTHING)
    reader = town.person("reader", Rule(["read"], GROUP, ["logs"]))
    service = f"{pool.url}?token_file={file}"
    with gateway(service, auth=town.auth, probe_port=0) as found:
        with httpx.Client(base_url=f"http://{found.address}", timeout=PATIENCE_S) as http:
            created = http.post("/v1/logs", json={"name": "orders"}, headers=_bearer(admin))
            assert created.status_code == 201, created.text
            told = http.get("/v1/logs/orders")
            assert (told.status_code, told.json()["code"]) == (401, "unauthenticated")
            assert told.headers["WWW-Authenticate"].startswith("Bearer")
            records = "/v1/logs/orders/records"
            body = {"records": [{"value": "a"}]}
            appended = http.post(records, json=body, headers=_bearer(admin))
            assert appended.status_code == 201, appended.text
            refused = http.post(records, json=body, headers=_bearer(reader))
            assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
            assert refused.json()["facts"]["user"] == town.user("reader")
            read: dict[str, Any] = http.get(records, headers=_bearer(reader)).json()
            assert [each["value"] for each in read["records"]] == ["a"]
            for path in ("/healthz", "/readyz"):
                assert http.get(path).status_code == 200
            assert http.get("/metrics").status_code == 401
        metrics = httpx.get(f"http://{found.probes}/metrics").text
        assert "anabranch_authority_forbidden_total 1.0" in metrics
        assert httpx.get(f"http://{found.probes}/readyz").json()["ready"] is True


def test_a_gateways_subscriber_whose_right_is_taken_away_is_told_so(pool: Pool, town: Town) -> None:
    admin = town.person("admin", *EVERYTHING)
    reader = town.person("reader", Rule(["read"], GROUP, ["logs"]))
    roles = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{town.home}/rolebindings"
    with (
        gateway(pool.url, auth=town.auth, service_token=admin) as found,
        httpx.Client(base_url=f"http://{found.address}", timeout=PATIENCE_S) as http,
    ):
        http.post("/v1/logs", json={"name": "orders"}, headers=_bearer(admin))
        path = "/v1/logs/orders/subscribe"
        with http.stream("GET", path, headers=_bearer(reader)) as answer:
            assert answer.status_code == 200
            town.server.ask("DELETE", f"{roles}/reader")
            told = [line for line in answer.iter_lines() if line.startswith(("event:", "data:"))]
        assert told[-2] == "event: ended"
        assert '"code":"forbidden"' in told[-1]


@pytest.mark.nightly  # the API server takes the token of an account that is gone for ten seconds
def test_a_token_from_a_file_is_read_again_when_the_old_one_is_over(
    pool: Pool, town: Town, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(town.person("agent", *EVERYTHING))
    settings = Settings(timeout_ms=round(PATIENCE_S * 1_000))
    url = f"{pool.url}?token_file={file}"
    with anabranch.connect(url, timeout=PATIENCE_S, settings=settings) as service:
        orders = service.create("orders")
        orders.append(b"first")  # its broker may be another than the one that was dialed first
        # With its account goes its token; another account has the same name and rights.
        account = f"/api/v1/namespaces/{town.home}/serviceaccounts/agent"
        town.server.ask("DELETE", account)
        town.server.apply(
            account,
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "agent"}},
            "tests",
        )
        file.write_text(town.server.token(town.home, "agent", AUDIENCE))
        while not sum(broker.lapsed for broker in pool.brokers):
            orders.append(b"a")
        orders.append(b"b")


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}
