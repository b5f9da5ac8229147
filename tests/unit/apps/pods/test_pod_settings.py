"""The settings of a cluster's processes: the same by flags, environment and file."""

from pathlib import Path
from typing import Any

import pytest

from anabranch.apps.pods.bolt_settings import (
    Archiving,
    BrokerSettings,
    GatewaySettings,
    MetadataSettings,
    load,
)
from anabranch.apps.settings import Option, options
from anabranch.core.errors import BadRequest
from anabranch.core.limits import Limits
from anabranch.shell.etcd.api.settings import EtcdSettings

LEAST = {"cluster": "c", "s3_bucket": "b"}
FILE = """
cluster = "c"
metadata = ["a:1", "b:2"]
archive = "sync"
[s3]
bucket = "b"
create_bucket = true
[etcd]
endpoints = ["e:1", "e:2"]
[peer_tls]
cert = "cert"
key = "key"
ca = "ca"
[limits]
linger_ms = 7
"""
SAME = {
    "cluster": "c",
    "metadata": "a:1, b:2",
    "archive": "sync",
    "s3_bucket": "b",
    "s3_create_bucket": "true",
    "etcd_endpoints": "e:1,e:2",
    "peer_tls_cert": "cert",
    "peer_tls_key": "key",
    "peer_tls_ca": "ca",
    "linger_ms": "7",
}


def known(kind: type[Any], values: dict[str, str]) -> dict[str, str]:
    names = {option.name for option in options(kind)}
    return {name: value for name, value in values.items() if name in names}


@pytest.mark.parametrize("kind", [MetadataSettings, BrokerSettings])
def test_file_environment_and_flags_say_the_same(kind: type[Any], tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.write_text(FILE)
    environment = {f"ANABRANCH_{name.upper()}": value for name, value in SAME.items()}
    by_file = load(kind, {"config": str(path)}, {})
    assert by_file == load(kind, {}, environment) == load(kind, known(kind, SAME), {})
    assert by_file.s3.create_bucket
    assert by_file.limits == Limits(linger_ms=7)
    assert by_file.peer_tls.ca == "ca"


def test_each_takes_its_own_of_what_all_share() -> None:
    environment = {f"ANABRANCH_{name.upper()}": value for name, value in SAME.items()}
    member = load(MetadataSettings, {"port": "1"}, environment)
    assert (member.port, member.archive) == (1, Archiving.SYNC)
    assert member.etcd == EtcdSettings(endpoints=("e:1", "e:2"))
    assert load(BrokerSettings, {}, environment).metadata == ("a:1", "b:2")


def test_a_nameless_process_is_called_after_its_host() -> None:
    assert load(MetadataSettings, {**LEAST, "name": "m"}, {}).node == "m"
    assert load(MetadataSettings, LEAST, {}).node


BROKER = {**LEAST, "metadata": "a:1"}
KUBERNETES = {**BROKER, "auth_mode": "kubernetes"}


@pytest.mark.parametrize(
    ("kind", "flags", "complaint"),
    [
        (MetadataSettings, {"s3_bucket": "b"}, "cluster: it must be given: by --cluster"),
        (MetadataSettings, {"cluster": "c"}, "s3_bucket: it must be given: by --s3-bucket"),
        (BrokerSettings, LEAST, "metadata: it must be given"),
        (BrokerSettings, {**LEAST, "metadata": ","}, "metadata: it is empty"),
        (BrokerSettings, {**LEAST, "metadata": "a"}, "write it as host:port"),
        (BrokerSettings, {**LEAST, "metadata": "a:70000"}, "write it as host:port"),
        (BrokerSettings, {**BROKER, "advertise": ":1"}, "write it as host:port"),
        (BrokerSettings, {**BROKER, "etcd_endpoints": "e:1"}, "there is no such setting"),
        (MetadataSettings, {**LEAST, "advertise": "a:1"}, "there is no such setting"),
        (MetadataSettings, {**LEAST, "cluster": ""}, "cluster: it is empty"),
        (MetadataSettings, {**LEAST, "lease_s": 1}, "lease_s = 1"),
        (MetadataSettings, {**LEAST, "port": 70_000}, "port = 70000"),
        (MetadataSettings, {**LEAST, "probe_port": -2}, "probe_port = -2"),
        (MetadataSettings, {**LEAST, "alive_ms": 0}, "alive_ms = 0"),
        (MetadataSettings, {**LEAST, "host": "0.0.0.0"}, "set peer_token or peer_tls"),
        (MetadataSettings, {**LEAST, "peer_token": ""}, "peer_token: it is empty"),
        (MetadataSettings, {**LEAST, "peer_tls_ca": "f"}, "give all three"),
        (MetadataSettings, {**LEAST, "archive": "perhaps"}, "archive"),
        (BrokerSettings, {**BROKER, "token": ""}, "token: it is empty"),
        (BrokerSettings, {**BROKER, "disk_cache_bytes": 0}, "disk_cache_bytes = 0"),
        (BrokerSettings, {**BROKER, "host": "example.org"}, "without a token"),
        (BrokerSettings, {**BROKER, "host": "0.0.0.0", "token": "t"}, "--advertise"),
        (BrokerSettings, {**BROKER, "auth_mode": "perhaps"}, "auth"),
        (BrokerSettings, {**KUBERNETES, "token": "t"}, "each client has its own"),
        (BrokerSettings, {**KUBERNETES, "auth_allow_ms": 10}, "auth.allow_ms = 10"),
        (BrokerSettings, {**KUBERNETES, "auth_grace_ms": -1}, "grace_ms"),
        (BrokerSettings, {**KUBERNETES, "auth_audience": ""}, "auth.audience"),
        (BrokerSettings, {**KUBERNETES, "auth_server": "http://a"}, "https://host:port"),
        (GatewaySettings, {"service": "a", "host": "0.0.0.0"}, "without a token"),
        (GatewaySettings, {"service": "a", "probe_port": -2}, "probe_port = -2"),
    ],
)
def test_what_cannot_be_is_refused(kind: type[Any], flags: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadRequest) as refused:
        load(kind, flags, {})
    assert complaint in refused.value.message


def test_others_may_reach_what_is_guarded() -> None:
    guarded = {**BROKER, "host": "0.0.0.0", "token": "t", "advertise": "broker-0.brokers:7420"}
    assert load(BrokerSettings, guarded, {}).advertise == "broker-0.brokers:7420"
    assert load(MetadataSettings, {**LEAST, "host": "::", "peer_token": "t"}, {}).host == "::"
    reviewed = {"host": "0.0.0.0", "auth_mode": "kubernetes"}
    assert load(BrokerSettings, {**BROKER, **reviewed, "advertise": "a:1"}, {}).token is None
    assert load(GatewaySettings, {"service": "a", **reviewed}, {}).auth.terms.deny_ms == 10_000


@pytest.mark.parametrize("kind", [MetadataSettings, BrokerSettings])
def test_every_setting_says_what_it_is(kind: type[Any]) -> None:
    found: list[Option] = list(options(kind))
    assert len({option.name for option in found}) == len(found)
    assert all(option.prose for option in found)
