"""All of it on a real node: `make test-cluster`. One release, used and harmed by turns, while a
client appends all the time; what it was told is durable is read back at the end.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from benchmarks.machine import commit, describe
from tests.cluster.account import RESULTS, Account, Results
from tests.cluster.load import Load
from tests.cluster.site import Site
from tests.kubernetes.api_server import ApiServer
from tests.kubernetes.keeper import kept

from anabranch.apps.processes.binaries import cache

ASKED = "ANABRANCH_TEST_CLUSTER"
ORDER = (
    *("serving", "deciding", "spark", "failing", "changing"),
    *("belfast", "erwin", "lazy", "leaving"),
)
"""The files, by what they are about: each takes what those before it left."""
PARTS = ("operator", "metadata", "broker", "gateway", "etcd", "s3")

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ours = [item for item in items if item.path.parent == _HERE]
    for item in ours:
        item.add_marker(pytest.mark.nightly)
        if ASKED not in os.environ:
            reason = "it takes a node and a quarter of an hour: make test-cluster"
            item.add_marker(pytest.mark.skip(reason))
    ours.sort(key=lambda item: ORDER.index(item.path.stem.removeprefix("test_")))
    others = [item for item in items if item.path.parent != _HERE]
    items[:] = [*others, *ours]


@pytest.fixture(scope="session")
def account() -> Account:
    return Account()


@pytest.fixture(scope="session")
def node() -> ApiServer:
    folder = cache() / "node"
    if not (folder.exists() and kept(folder)):
        pytest.fail("there is no node: python -m tests.kubernetes.node up")
    return ApiServer(folder / "state" / "plane")


@pytest.fixture(scope="session")
def site(account: Account, node: ApiServer) -> Iterator[Site]:
    """The release, green."""
    site = Site(node)
    try:
        with account.step("helm install, until everything is ready"):
            site.install()
            site.until_green()
        yield site
    finally:
        _take_away(site)


@pytest.fixture(scope="session")
def load(site: Site, account: Account, root: Path) -> Load:
    """Somebody appends to `orders` all the time."""
    site.kubectl("apply", "-f", str(root / "examples" / "kubernetes" / "log.yaml"))
    site.until_is("logs", "orders", "Ready")
    return Load(site, account)


@pytest.fixture(scope="session")
def results(site: Site, load: Load, account: Account) -> Iterator[None]:
    """Written when all has been seen to be well."""
    parts = {each: len(site.parts(each)) for each in PARTS}
    yield
    if not load.appended:
        return
    version = json.loads(site.api.kubectl("version", "--output=json"))["serverVersion"]
    found = Results(
        machine=describe(RESULTS.parent),
        commit=commit(),
        kubernetes=version["gitVersion"],
        pods=parts,
        appended=load.appended,
        steps=account.steps,
    )
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")


def _take_away(site: Site) -> None:
    site.helm("uninstall", "demo", "--ignore-not-found")
    site.api.kubectl("delete", "namespace", site.namespace, "--wait=false")
