"""Servers of others for tests: one of each for a worker's whole session, on fresh folders.

A module that wants them imports the fixtures by name:
`from tests.servers import etcd, s3  # noqa: F401`, or its folder's conftest does.
A test that harms a server starts one of its own with the classes of `apps/processes`.
"""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from anabranch.apps.processes.binaries import ETCD, TOXIPROXY, VERSITYGW, Server, find, obstacle
from anabranch.apps.processes.servers import EtcdGroup, EtcdServer, S3Server
from anabranch.apps.processes.toxiproxy import Toxiproxy
from anabranch.shell.objects.s3.settings import S3Settings

_SERIALS = count()


def needs(*servers: Server) -> None:
    """Skip what can't be tried here for want of a server."""
    for server in servers:
        stands = obstacle(server)
        if stands is not None:
            pytest.skip(stands)
        find(server)  # now, and not while somebody looks at the clock


@pytest.fixture(scope="session")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    """One member, which doesn't sync: for tests that end nobody."""
    needs(ETCD)
    group = EtcdGroup(_folder(tmp_path_factory, "etcd"), 1, unsafe_no_fsync="true")
    try:
        group.start()
        yield group.members[0]
    finally:
        group.kill()


@pytest.fixture(scope="session")
def etcd_three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdGroup]:
    """Three members; a test that ends one starts it again."""
    needs(ETCD)
    group = EtcdGroup(_folder(tmp_path_factory, "etcd-three"), 3, unsafe_no_fsync="true")
    try:
        group.start()
        yield group
    finally:
        group.kill()


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """An S3 server without a bucket: each test makes its own."""
    needs(VERSITYGW)
    server = S3Server(_folder(tmp_path_factory, "s3"))
    try:
        server.start()
        yield server
    finally:
        server.kill()


@pytest.fixture(scope="session")
def toxiproxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Toxiproxy]:
    needs(TOXIPROXY)
    server = Toxiproxy(_folder(tmp_path_factory, "toxiproxy"))
    try:
        server.start()
        yield server
    finally:
        server.kill()


def bucket_of(server: S3Server) -> S3Settings:
    """A bucket of the caller's own, and how to reach it."""
    bucket = f"bucket-{next(_SERIALS)}"
    server.make_bucket(bucket)
    return S3Settings(
        bucket=bucket,
        endpoint=server.endpoint,
        region=server.region,
        access_key=server.access_key,
        secret_key=server.secret_key,
    )


def _folder(made_by: pytest.TempPathFactory, name: str) -> Path:
    """One that isn't there yet."""
    return made_by.mktemp(name) / name
