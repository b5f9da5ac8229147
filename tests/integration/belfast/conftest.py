"""One small log that many tests share; those that harm theirs have their own."""

from collections.abc import Iterator

import pytest
from tests.integration.belfast.deployment import deployed

from anabranch.apps.processes.local_log import LocalLog, LogShape


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalLog]:
    folder = tmp_path_factory.mktemp("belfast") / "log"
    shape = LogShape(sequencers=1, shards=2, copies=1)
    with deployed(folder, shape, {"window": 20}) as local:
        yield local
