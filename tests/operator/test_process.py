"""The operator as a process, against a real API server and a log service."""

from itertools import takewhile
from pathlib import Path
from typing import Any

from tests.kubernetes.api_server import ApiServer, Refused
from tests.kubernetes.audit import Request
from tests.kubernetes.control_plane import ControlPlane
from tests.operator.blinding import blinding
from tests.operator.installed import resources_of, until
from tests.operator.running import SWIFT, Operator, log_service, running, until_one_leads

LOG = {"apiVersion": "anabranch.dev/v1alpha1", "kind": "Log", "metadata": {"name": "orders"}}

OF_ONE_TURN = 8
"""Writes that the loop lets through at once."""


def fork(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "anabranch.dev/v1alpha1",
        "kind": "Fork",
        "metadata": {"name": name},
        "spec": {"parent": {"name": "orders"}},
    }


def path(namespace: str, plural: str, name: str = "") -> str:
    return f"/apis/anabranch.dev/v1alpha1/namespaces/{namespace}/{plural}" + f"/{name}" * bool(name)


def mirrored(server: ApiServer, where: str) -> dict[str, Any]:
    """The resource, once it shows its log; there is no pod here that could serve it."""

    def look() -> dict[str, Any] | None:
        found = server.ask("GET", where)
        return found if "logId" in found.get("status", {}) else None

    return until(look, f"{where} shows its log")


def until_gone(server: ApiServer, where: str) -> None:
    def look() -> bool | None:
        try:
            server.ask("GET", where)
        except Refused as refused:
            if refused.code != 404:
                raise
            return True
        return None

    until(look, f"{where} is let go")


def besides_the_lease(requests: list[Request]) -> list[Request]:
    return [each for each in requests if each.resource != "leases"]


def while_the_lease_is_renewed(
    server: ApiServer, since: int, user: str, times: int
) -> list[Request]:
    """All that was asked meanwhile."""

    def look() -> list[Request] | None:
        requests = server.requests(since, user)
        renewals = [each for each in requests if each.resource == "leases" and each.writes]
        return requests if len(renewals) >= times else None

    return until(look, f"the Lease is renewed {times} times")


def test_what_is_declared_comes_to_be_and_kopf_leaves_no_trace(
    resources: ApiServer, namespace: str, tmp_path: Path
) -> None:
    with log_service(tmp_path) as service:
        operator = Operator(resources, namespace, tmp_path, "operator", service=service)
        with running(operator):
            until_one_leads(operator)
            resources.ask("POST", path(namespace, "logs"), LOG)
            resources.ask("POST", path(namespace, "forks"), fork("what-if"))
            for plural, name in (("logs", "orders"), ("forks", "what-if")):
                found = mirrored(resources, path(namespace, plural, name))
                assert "kopf" not in str(found["metadata"])
                assert not found["metadata"].get("annotations")
                assert "finalizers" not in found["metadata"]
            assert operator.figure("anabranch_operator_forks") == 1
            assert operator.figure("anabranch_operator_leader") == 1
            assert operator.figure('anabranch_operator_api_requests_total{code="200"') > 0
            assert operator.get("/healthz")[0] == 200
            operator.process.ask_to_end()
            assert operator.exit_code() == 0
            lease = resources.ask(
                "GET",
                f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/demo-operator",
            )
            assert not lease["spec"].get("holderIdentity")
            steps = {each["step"]: each for each in operator.log() if each["event"] == "done"}
            assert steps.keys() >= {"Mark", "CreateRoot", "MakeFork", "Apply", "ApplyStatus"}
            told = steps["MakeFork"]
            assert (told["kind"], told["object"]) == ("Fork", f"{namespace}/what-if")
            assert told["reconcile"] > 0


def test_one_for_all_namespaces_serves_another_and_lets_go_of_what_is_in_one_that_goes(
    own_api_server: ControlPlane, tmp_path: Path
) -> None:
    """On an API server of its own: it would tend what other tests declare as well."""
    resources = resources_of(own_api_server.api)
    namespace, elsewhere = resources.namespace(), resources.namespace()
    with log_service(tmp_path) as service:
        operator = Operator(
            resources, namespace, tmp_path, "operator", watch="cluster", service=service
        )
        with running(operator):
            resources.ask("POST", path(elsewhere, "logs"), LOG)
            resources.ask("POST", path(elsewhere, "forks"), fork("what-if"))
            for plural, name in (("logs", "orders"), ("forks", "what-if")):
                mirrored(resources, path(elsewhere, plural, name))
            # There is no controller here that would empty it: it is only marked as going.
            resources.ask("DELETE", f"/api/v1/namespaces/{elsewhere}")
            for plural, name in (("forks", "what-if"), ("logs", "orders")):
                resources.ask("DELETE", path(elsewhere, plural, name))
                until_gone(resources, path(elsewhere, plural, name))


def test_when_all_is_as_it_should_be_nothing_is_asked_but_the_lease(
    resources: ApiServer, namespace: str, tmp_path: Path
) -> None:
    with log_service(tmp_path) as service:
        operator = Operator(resources, namespace, tmp_path, "operator", service=service, **SWIFT)
        with running(operator):
            resources.ask("POST", path(namespace, "logs"), LOG)
            for number in range(5):
                resources.ask("POST", path(namespace, "forks"), fork(f"f{number}"))
            for number in range(5):
                mirrored(resources, path(namespace, "forks", f"f{number}"))

            def counted() -> bool | None:
                status = resources.ask("GET", path(namespace, "logs", "orders"))["status"]
                return True if status.get("forks") == 5 else None

            until(counted, "its numbers are shown, which are put off for a while")

            def quiet() -> bool | None:
                since = resources.mark()
                requests = while_the_lease_is_renewed(resources, since, operator.user, 4)
                return None if besides_the_lease(requests) else True

            until(quiet, "it has converged")
            since = resources.mark()
            requests = while_the_lease_is_renewed(resources, since, operator.user, 10)
            assert besides_the_lease(requests) == []


def test_a_leader_that_was_paused_writes_nothing_once_another_leads(
    resources: ApiServer, namespace: str, tmp_path: Path
) -> None:
    with log_service(tmp_path) as service:
        both = [
            Operator(resources, namespace, tmp_path, name, service=service, **SWIFT)
            for name in ("one", "other")
        ]
        with running(*both):
            resources.ask("POST", path(namespace, "logs"), LOG)
            mirrored(resources, path(namespace, "logs", "orders"))
            stale = until_one_leads(*both)
            heir = next(each for each in both if each is not stale)
            for number in range(20):
                resources.ask("POST", path(namespace, "forks"), fork(f"f{number}"))
            stale.process.pause()  # with what it was about to do
            until_one_leads(heir)
            since = resources.mark()
            stale.process.resume()
            until(lambda: None if stale.leads else True, "it knows")
            for number in range(20):
                mirrored(resources, path(namespace, "forks", f"f{number}"))
            before_its_next_turn = takewhile(
                lambda each: each.resource != "leases" or not each.writes or each.code >= 300,
                resources.requests(since, stale.user),
            )
            # It is stopped anywhere: also between a look at the clock and the socket, which is a
            # turn of its loop, and so are the few that were let through in that very turn.
            late = [each for each in before_its_next_turn if each.writes and each.code < 300]
            assert len(late) <= OF_ONE_TURN
            assert all(each.verb == "patch" for each in late)


def test_an_operator_whose_watches_fall_silent_ends_and_one_that_waits_does_not(
    resources: ApiServer, namespace: str, tmp_path: Path
) -> None:
    with log_service(tmp_path) as service, blinding(resources) as proxy:
        blind = Operator(
            resources,
            namespace,
            tmp_path,
            "blind",
            through=proxy.url,
            service=service,
            canary_s=6,
            inactivity_s=2,
            **SWIFT,
        )
        sees = Operator(resources, namespace, tmp_path, "sees", service=service)
        with running(blind, sees):
            proxy.blind()
            assert blind.exit_code() == 1
            assert "Blind" in blind.log()[-1]["reason"]
            until_one_leads(sees)


def test_an_api_server_that_was_away_is_no_reason_to_end(
    own_api_server: ControlPlane, tmp_path: Path
) -> None:
    server = resources_of(own_api_server.api)
    namespace = server.namespace()
    with log_service(tmp_path) as service:
        operator = Operator(
            server, namespace, tmp_path, "operator", service=service, canary_s=6, **SWIFT
        )
        with running(operator):
            until_one_leads(operator)
            own_api_server.servers["kube-apiserver"].pause()

            def waited() -> bool | None:
                unanswered = "the Lease couldn't be read or renewed"
                times = sum(line["event"] == unanswered for line in operator.log())
                return True if times >= 5 else None

            until(waited, "it was away for longer than the canary's patience")
            assert not operator.leads
            own_api_server.servers["kube-apiserver"].resume()
            until_one_leads(operator)
            server.ask("POST", path(namespace, "logs"), LOG)
            mirrored(server, path(namespace, "logs", "orders"))
            assert operator.process.running
