"""What the tests of both kinds of processes share."""

from typing import Any

import pytest
from tests.certificates import certified

from anabranch.shell.net.tls import TlsSettings
from anabranch.shell.runtime import failpoints


@pytest.fixture
def disarmed() -> Any:
    yield
    failpoints.arm("")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TlsSettings]:
    """By authority: what one of its peers shows, and trusts."""
    folder = tmp_path_factory.mktemp("tls")
    return {name: certified(folder / name) for name in ("ours", "theirs")}
