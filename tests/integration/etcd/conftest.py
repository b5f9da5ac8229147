"""One etcd for the tests that harm nobody; each test has a cluster name of its own in it."""

from collections.abc import Iterator

import pytest
from tests.etcd_groups import Group, bridged, client_of
from tests.servers import etcd, etcd_three, toxiproxy

from anabranch.apps.processes.servers import EtcdServer
from anabranch.shell.etcd.api.client import EtcdClient
from anabranch.shell.etcd.archive.snapshots import BridgedBlobs

__all__ = ["etcd", "etcd_three", "toxiproxy"]


@pytest.fixture(scope="session")
def blobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BridgedBlobs]:
    with bridged(tmp_path_factory.mktemp("objects")) as blobs:
        yield blobs


@pytest.fixture
def client(etcd: EtcdServer) -> Iterator[EtcdClient]:
    client = client_of([etcd.address])
    yield client
    client.close()


@pytest.fixture
def group(client: EtcdClient, blobs: BridgedBlobs) -> Group:
    return Group(client, blobs)
