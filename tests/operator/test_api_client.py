"""Our client of the API server, against a real one."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.kubernetes.api_server import ApiServer, Rule

from anabranch.shell.runtime.clock import Clock
from anabranch_operator.api import names
from anabranch_operator.kube.access import Access, from_account, from_kubeconfig
from anabranch_operator.kube.client import Client
from anabranch_operator.kube.rate_limit import Pace
from anabranch_operator.kube.refusals import (
    Away,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    NotStanding,
)
from anabranch_operator.kube.writes import Writer
from anabranch_operator.plan.engine.actions import Apply
from anabranch_operator.plan.engine.events import Refusal
from anabranch_operator.plan.engine.objects import Observed, Ref, observe


@asynccontextmanager
async def connected(
    access: Access, standing: Callable[[], bool] = lambda: True
) -> AsyncIterator[Client]:
    client = Client(access, Pace(Clock(), 1_000, 1_000), standing)
    try:
        yield client
    finally:
        await client.close()


@pytest.fixture
def access(api_server: ApiServer) -> Access:
    return from_kubeconfig(str(api_server.kubeconfig))


def config_map(ref: Ref, **content: str) -> dict[str, Any]:
    meta = {"name": ref.name, "namespace": ref.namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": content}


def test_what_is_applied_is_there_and_what_is_left_out_later_goes(
    access: Access, namespace: str
) -> None:
    ref = Ref("ConfigMap", namespace, "one")

    async def run() -> None:
        async with connected(access) as client:
            first = observe(await client.apply(ref, config_map(ref, a="1", b="2")))
            again = observe(await client.apply(ref, config_map(ref, a="1", b="2")))
            assert again == first
            less = await client.apply(ref, config_map(ref, a="1"))
            assert less["data"] == {"a": "1"}
            assert observe(await client.get(ref)).version > first.version

    asyncio.run(run())


def test_what_others_have_set_stays(access: Access, api_server: ApiServer, namespace: str) -> None:
    ref = Ref("ConfigMap", namespace, "shared")
    path = f"/api/v1/namespaces/{namespace}/configmaps/shared"
    api_server.apply(path, config_map(ref, theirs="1"), "somebody")

    async def run() -> None:
        async with connected(access) as client:
            await client.apply(ref, config_map(ref, ours="2"))
            after = await client.apply(ref, config_map(ref))
            assert after["data"] == {"theirs": "1"}

    asyncio.run(run())


def test_an_object_is_deleted_by_its_uid_and_no_other_of_its_name(
    access: Access, namespace: str
) -> None:
    ref = Ref("ConfigMap", namespace, "one")

    async def run() -> None:
        async with connected(access) as client:
            first = observe(await client.create(ref, config_map(ref)))
            with pytest.raises(Conflict):
                await client.create(ref, config_map(ref))
            assert await client.delete(ref, first.uid) is None
            second = observe(await client.create(ref, config_map(ref)))
            with pytest.raises(Conflict):
                await client.delete(ref, first.uid)
            assert observe(await client.get(ref)).uid == second.uid
            await client.delete(ref, second.uid)
            with pytest.raises(NotFound):
                await client.delete(ref, second.uid)

    asyncio.run(run())


def test_a_finalizer_of_ours_goes_with_a_mark_that_never_makes_an_object(
    access: Access, api_server: ApiServer, namespace: str
) -> None:
    ref = Ref("ConfigMap", namespace, "held")
    path = f"/api/v1/namespaces/{namespace}/configmaps/held"

    async def run() -> None:
        async with connected(access) as client:
            made = config_map(ref)
            made["metadata"]["finalizers"] = ["example.com/theirs"]
            first = observe(await client.create(ref, made))
            made = config_map(ref)
            made["metadata"]["finalizers"] = [names.FINALIZER]
            await client.apply(ref, made, names.MARK_MANAGER)
            still = await client.delete(ref, first.uid)
            assert still is not None
            assert set(observe(still).finalizers) == {"example.com/theirs", names.FINALIZER}
            assert observe(still).deleting
            held = observe(await client.mark(ref, first.uid, "api"))
            assert held.finalizers == ("example.com/theirs",)
            assert held.labels["anabranch.dev/made-by"] == "api"
            none = {"metadata": {"finalizers": None}}
            api_server.ask("PATCH", path, none, content="application/merge-patch+json")
            with pytest.raises((Conflict, NotFound)):
                await client.mark(ref, first.uid, "api")
            with pytest.raises(NotFound):
                await client.get(ref)

    asyncio.run(run())


def test_a_service_of_somebody_elses_is_not_made_ours(access: Access, namespace: str) -> None:
    ref = Ref("Service", namespace, "log-collector")
    ports = [{"name": "anabranch", "port": 7420}]
    labels = {"app.kubernetes.io/managed-by": "anabranch-operator"}
    meta = {"name": ref.name, "namespace": namespace}
    kind: dict[str, Any] = {"apiVersion": "v1", "kind": "Service"}
    theirs = {**kind, "metadata": meta, "spec": {"ports": [{"name": "http", "port": 80}]}}
    ours = {**kind, "metadata": {**meta, "labels": labels}, "spec": {"ports": ports}}

    async def run() -> None:
        async with connected(access) as client:
            writer = Writer(client, "tests")
            found = observe(await client.create(ref, theirs))
            refused = await writer.perform(Apply(ref=ref, manifest=ours, anew=True))
            assert isinstance(refused, Refusal)
            assert "isn't the operator's" in refused.message
            assert observe(await client.get(ref)) == found
            await client.delete(ref, found.uid)
            for anew in (True, True, False):
                made = await writer.perform(Apply(ref=ref, manifest=ours, anew=anew))
                assert isinstance(made, Observed)

    asyncio.run(run())


def test_a_status_is_of_one_object_and_not_of_the_next_of_its_name(
    access: Access, namespace: str
) -> None:
    ref = Ref("Job", namespace, "one")
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": ref.name, "namespace": namespace},
        "spec": {"template": {"spec": pod}},
    }

    async def run() -> None:
        async with connected(access) as client:
            made = observe(await client.apply(ref, job))
            now = await client.apply_status(ref, made.uid, {"active": 1})
            assert now["status"]["active"] == 1
            with pytest.raises(Conflict):
                await client.apply_status(
                    ref, "00000000-0000-0000-0000-000000000000", {"active": 2}
                )
            with pytest.raises(NotFound):
                await client.apply_status(ref._replace(name="none"), made.uid, {"active": 2})

    asyncio.run(run())


def test_refusals_say_what_the_api_server_said(
    access: Access, api_server: ApiServer, namespace: str
) -> None:
    token = api_server.service_account(namespace, "nobody")
    stranger = from_kubeconfig(str(api_server.config_of(token)))
    ref = Ref("ConfigMap", namespace, "Not A Name")

    async def run() -> None:
        async with connected(access) as client:
            with pytest.raises(Invalid, match="lowercase RFC 1123"):
                await client.create(ref, config_map(ref))
        async with connected(stranger) as client:
            with pytest.raises(Forbidden, match="cannot get resource"):
                await client.get(ref)
        async with connected(Access(server="https://127.0.0.1:1", namespace="x")) as client:
            with pytest.raises(Away):
                await client.get(ref)

    asyncio.run(run())


def test_who_has_no_lease_any_more_writes_nothing(
    access: Access, api_server: ApiServer, namespace: str
) -> None:
    ref = Ref("ConfigMap", namespace, "one")
    before = api_server.mark()

    async def run() -> None:
        async with connected(access, standing=lambda: False) as client:
            for _ in range(3):  # with a connection that is made, and with one that is there
                with pytest.raises(NotStanding):
                    await client.apply(ref, config_map(ref))
                with pytest.raises(NotFound):
                    await client.get(ref)

    asyncio.run(run())
    written = [each for each in api_server.requests(before) if each.namespace == namespace]
    assert not [each for each in written if each.writes]


def test_lists_come_in_pages_and_without_what_nobody_reads(
    access: Access, api_server: ApiServer, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anabranch_operator.kube.client.PAGE", 2)
    for number in range(5):
        ref = Ref("ConfigMap", namespace, f"c{number}")
        manifest = config_map(ref, a="1")
        manifest["metadata"]["labels"] = {"odd": str(number % 2)}
        api_server.apply(f"/api/v1/namespaces/{namespace}/configmaps/{ref.name}", manifest, "x")

    async def names(client: Client, **how: Any) -> list[dict[str, Any]]:
        return [
            item
            async for page in client.pages("ConfigMap", namespace, **how)
            for item in page.items
        ]

    async def run() -> None:
        async with connected(access) as client:
            lean = await names(client)
            assert [each["metadata"]["name"] for each in lean] == [f"c{n}" for n in range(5)]
            assert not any("data" in each for each in lean)
            odd = await names(client, labels="odd=1", whole=True)
            assert [each["data"] for each in odd] == [{"a": "1"}, {"a": "1"}]
            one = await names(client, fields="metadata.name=c3")
            assert len(one) == 1

    asyncio.run(run())


def test_a_token_that_was_rotated_is_used_from_then_on(
    api_server: ApiServer, namespace: str, tmp_path: Path
) -> None:
    rules = [Rule(["get"], [""], ["configmaps"])]
    (tmp_path / "token").write_text("worn out")
    (tmp_path / "namespace").write_text(namespace)
    (tmp_path / "ca.crt").write_bytes(api_server.ca.read_bytes())
    host, _, port = api_server.url.removeprefix("https://").partition(":")
    access = from_account(tmp_path, host, port)

    async def run() -> None:
        async with connected(access) as client:
            ref = Ref("ConfigMap", namespace, "none")
            with pytest.raises(Forbidden):
                await client.get(ref)
            fresh = tmp_path / "fresh"
            fresh.write_text(api_server.service_account(namespace, "reader", rules))
            fresh.rename(tmp_path / "token")
            with pytest.raises(NotFound):
                await client.get(ref)

    asyncio.run(run())


def test_kinds_that_the_api_server_knows_are_told_from_others(access: Access) -> None:
    async def run() -> None:
        async with connected(access) as client:
            assert await client.serves("Job")
            assert await client.serves("Pod")

    asyncio.run(run())
