"""A bucket that can't be used is refused at start, with what to change."""

import io
from datetime import datetime, timedelta
from typing import Any

import botocore.auth
import pytest
from msgspec.structs import replace
from tests.fault_proxy import NOTHING, FaultProxy, Spoil
from tests.integration.s3.conftest import Behind
from tests.servers import bucket_of

from anabranch.apps.processes.ports import free_ports
from anabranch.apps.processes.servers import S3Server
from anabranch.core.errors import AccessDenied, BadRequest, ClockSkewed, Unavailable
from anabranch.shell.objects.s3.admin import PROBE, open_bucket
from anabranch.shell.objects.s3.clients import administrative
from anabranch.shell.objects.s3.settings import S3Settings
from anabranch.shell.runtime.clock import Clock
from anabranch.shell.telemetry.log import Log


def opened(settings: S3Settings) -> str:
    """What the log says."""
    clock, said = Clock(), io.StringIO()
    open_bucket(settings, Log(clock.now, stream=said), clock.now())
    return said.getvalue()


def test_a_sound_bucket_is_taken_again_and_again(s3: S3Server) -> None:
    settings = replace(bucket_of(s3), prefix="some/where")
    assert "lifecycle" in opened(settings)
    opened(settings)
    client = administrative(settings)
    listed = client.list_objects_v2(Bucket=settings.bucket).get("Contents", [])
    assert [(each.get("Key"), each.get("Size")) for each in listed] == [(f"some/where/{PROBE}", 0)]
    assert "Uploads" not in client.list_multipart_uploads(Bucket=settings.bucket)


def test_a_missing_bucket_is_made_only_if_asked_for(s3: S3Server) -> None:
    settings = replace(bucket_of(s3), bucket="not-yet-there")
    with pytest.raises(BadRequest, match=r"bucket not-yet-there at .*no such bucket.*s3_create_"):
        opened(settings)
    for _ in range(2):
        opened(replace(settings, create_bucket=True))
    opened(settings)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"access_key": "stranger"}, r"stranger in: .*no such key .*s3_access_key"),
        ({"secret_key": "wrong"}, r"anabranch in: .*secret is not that key's .*s3_secret_key"),
    ],
    ids=["key", "secret"],
)
def test_wrong_credentials_are_told_apart(
    s3: S3Server, changed: dict[str, str], sentence: str
) -> None:
    with pytest.raises(AccessDenied, match=sentence):
        opened(replace(bucket_of(s3), **changed))


def test_no_credentials_at_all_are_said(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, "/nowhere")
    with pytest.raises(AccessDenied, match="no keys were given and none were found"):
        opened(replace(bucket_of(s3), access_key=None, secret_key=None))


def test_what_amazons_tools_would_find_is_found(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = bucket_of(s3)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.secret_key)
    opened(replace(settings, access_key=None, secret_key=None))


def test_an_endpoint_where_nobody_is_is_named(s3: S3Server) -> None:
    settings = replace(bucket_of(s3), endpoint=f"http://127.0.0.1:{free_ports(1)[0]}")
    with pytest.raises(Unavailable, match=f"{settings.endpoint} .*nobody answers .*s3_endpoint"):
        opened(settings)


def test_another_region_is_named(s3: S3Server) -> None:
    with pytest.raises(BadRequest, match=r"s3_region = eu-west-1: .*is in us-east-1"):
        opened(replace(bucket_of(s3), region="eu-west-1"))


def test_a_clock_that_is_off_by_an_hour_is_refused(behind: Behind) -> None:
    behind.proxy.spoil = lambda _: Spoil(headers={"date": "Sat, 01 Jan 2000 00:00:00 GMT"})
    with pytest.raises(ClockSkewed, match=r"off by [\d,]+ s \(ahead\).*set it right"):
        opened(behind.settings)
    behind.proxy.spoil = lambda _: Spoil(headers={"date": "Thu, 01 Jan 2099 00:00:00 GMT"})
    with pytest.raises(ClockSkewed, match=r"off by [\d,]+ s \(behind\)"):
        opened(behind.settings)


def test_a_clock_that_the_store_refuses_is_said(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    now: Any = vars(botocore.auth)["get_current_datetime"]

    def in_an_hour(*words: Any, **named: Any) -> datetime:
        return now(*words, **named) + timedelta(hours=1)

    monkeypatch.setattr(botocore.auth, "get_current_datetime", in_an_hour)
    with pytest.raises(ClockSkewed, match="off by more than the store allows"):
        opened(bucket_of(s3))


@pytest.mark.parametrize("what", ["PUT", "POST"])
def test_a_store_that_overwrites_is_refused(behind: Behind, what: str) -> None:
    """As one does that has never heard of the condition."""
    done = Spoil(status=200, headers={"content-type": "application/xml"})
    ends = "uploadId" if what == "POST" else PROBE
    behind.proxy.spoil = lambda request: (
        done if request.method == what and ends in request.path else NOTHING
    )
    with pytest.raises(BadRequest, match="doesn't honour If-None-Match on"):
        opened(behind.settings)


def test_a_key_that_may_do_nothing_is_said(behind: Behind) -> None:
    behind.proxy.spoil = lambda _: Spoil(status=403, code="AccessDenied")
    with pytest.raises(AccessDenied, match=r"AccessDenied"):
        opened(behind.settings)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"bucket": ""}, "bucket: it is empty"),
        ({"access_key": "a"}, "give both"),
        ({"endpoint": "127.0.0.1:9000"}, "write it as https://"),
        ({"endpoint": "ftp://a"}, "write it as https://"),
        ({"prefix": "/a"}, "no / before"),
        ({"attempt_ms": 0}, "too small"),
        ({"attempt_ms": 9, "deadline_ms": 8}, "below attempt_ms"),
        ({"retry_ms": 0}, "retry_ms_max"),
        ({"multipart_bytes_min": 6 << 30}, "5 GiB"),
        ({"part_bytes": 1 << 20}, "5 MiB"),
    ],
    ids=str,
)
def test_a_setting_that_makes_no_sense_is_refused(changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadRequest, match=sentence):
        S3Settings(**{"bucket": "logs", **changed})


def test_a_proxy_that_is_used_forwards_what_it_gets(s3: S3Server) -> None:
    """The proxy itself: else a test behind it proves little."""
    with FaultProxy(s3.address) as proxy:
        opened(replace(bucket_of(s3), endpoint=proxy.endpoint))
        assert {request.method for request in proxy.requests} >= {"GET", "PUT", "POST", "DELETE"}
