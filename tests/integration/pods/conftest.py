"""Clusters of processes, on the servers of the session."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.pods.crew import Crew
from tests.servers import etcd, s3

from anabranch.apps.processes.servers import EtcdServer, S3Server

__all__ = ["etcd", "s3"]


@pytest.fixture
def crew(tmp_path: Path, etcd: EtcdServer, s3: S3Server) -> Iterator[Crew]:
    crew = Crew(tmp_path, etcd, s3)
    try:
        yield crew
    finally:
        crew.kill()
