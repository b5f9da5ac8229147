"""What is S3's own of the store: pages, a prefix and its neighbours, credentials that fail."""

from typing import Any

import pytest
from botocore.exceptions import CredentialRetrievalError
from tests.integration.s3.conftest import Behind

from anabranch.core.errors import StorageFailed
from anabranch.shell.objects.s3 import clients
from anabranch.shell.objects.s3 import store as module
from anabranch.shell.objects.s3.clients import administrative
from anabranch.shell.objects.s3.store import S3Store


@pytest.mark.parametrize("prefix", ["", "deep/er"])
def test_a_listing_of_many_pages_misses_nothing(
    behind: Behind, monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    monkeypatch.setattr(module, "PAGE", 3)
    names = [*sorted(f"a/{n}" for n in range(12)), "b/1"]

    async def body(store: S3Store) -> None:
        for name in names:
            await store.put(name, [b"x"])
        assert [each.name for each in await store.list()] == names
        assert [each.name for each in await store.list("a/")] == names[:-1]
        assert [each.name for each in await store.list("a/1")] == ["a/1", "a/10", "a/11"]
        assert store.meter.counters.lists == 5 + 5 + 5
        await store.delete(names)
        assert await store.list() == []

    behind.play(body, prefix=prefix)


def test_what_lies_beside_the_prefix_is_left_alone(behind: Behind) -> None:
    client = administrative(behind.settings)
    client.put_object(Bucket=behind.settings.bucket, Key="others/1", Body=b"theirs")

    async def body(store: S3Store) -> None:
        await store.put("others/1", [b"ours"])
        assert [each.name for each in await store.list()] == ["others/1"]
        await store.delete(["others/1"])

    behind.play(body, prefix="log")
    found = client.get_object(Bucket=behind.settings.bucket, Key="others/1")
    assert found["Body"].read() == b"theirs"


def test_credentials_that_can_t_be_had_are_an_outage(
    behind: Behind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Roles are renewed over the network, which may fail at any time."""

    class Failing:
        def __init__(self, _: Any) -> None:
            self.config: dict[str, str] = {}

        def __call__(self) -> Any:
            raise CredentialRetrievalError(provider="role", error_msg="no answer")

    monkeypatch.setattr(clients, "Boto3CredentialProvider", Failing)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")

    async def body(store: S3Store) -> None:
        with pytest.raises(StorageFailed, match="a/1"):
            await store.put("a/1", [b"x"])

    impatient = {"attempt_ms": 1_000, "deadline_ms": 1_000}
    behind.play(body, access_key=None, secret_key=None, **impatient)
