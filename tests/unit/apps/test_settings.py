"""Settings come from three places, and none of them may say what can't be."""

from pathlib import Path
from typing import Any

import pytest

from anabranch.apps.settings import Settings, load
from anabranch.core.errors import BadRequest
from anabranch.core.limits import Limits


def test_settings_come_from_flags_then_environment_then_file(tmp_path: Path) -> None:
    path = tmp_path / "up.toml"
    path.write_text('port = 1\nhttp_port = 2\ncluster = "file"\n[limits]\nlinger_ms = 7\n')
    environment = {"ANABRANCH_PORT": "3", "ANABRANCH_HTTP_PORT": "4", "OTHER": "x"}
    flags = {"config": str(path), "port": 5, "data": None}
    settings = load(flags, environment)
    assert (settings.port, settings.http_port, settings.cluster) == (5, 4, "file")
    assert settings.limits == Limits(linger_ms=7)
    assert load({}, {"ANABRANCH_LINGER_MS": "9", "ANABRANCH_MEMORY": "true"}) == Settings(
        memory=True, limits=Limits(linger_ms=9)
    )


@pytest.mark.parametrize(
    ("flags", "environment", "complaint"),
    [
        ({"prot": 1}, {}, "prot in the command line: there is no such setting"),
        ({}, {"ANABRANCH_PROT": "1"}, "prot in the environment"),
        ({"port": "many"}, {}, "settings"),
        ({"port": 70_000}, {}, "port = 70000"),
        ({"port": -1}, {}, "port = -1"),
        ({"linger_ms": -1}, {}, "linger_ms = -1"),
        ({"batch_bytes_max": 1}, {}, "record_bytes_max = 1048576: it must be below"),
        ({"frame_bytes_max": 4 << 20}, {}, "batch_bytes_max"),
        ({"watch_ms": 0}, {}, "watch_ms = 0"),
        ({"gc_interval_ms": 0}, {}, "gc_interval_ms = 0"),
        ({"propose_retry_ms": 0}, {}, "propose_retry_ms = 0"),
        ({"object_bytes_max": (1 << 29) + 1}, {}, "object_bytes_max = 536870913: it is too large"),
        ({"frame_bytes_max": 1 << 32}, {}, "frame_bytes_max = 4294967296: it is too large"),
        ({"group_bytes_max": 1 << 30}, {}, "group_bytes_max = 1073741824: it is too large"),
        ({"batch_headers_max": 500_001}, {}, "batch_headers_max = 500001: it is too large"),
        ({"batch_unpacked_bytes_max": 1 << 29}, {}, "batch_unpacked_bytes_max = 536870912: it is"),
        ({"batch_headers_max": 4_999}, {}, "record_headers_max = 5000: it must not be above"),
        ({"host": "0.0.0.0"}, {}, "without a token"),
        ({"host": "example.org"}, {}, "without a token"),
        ({"token": ""}, {}, "token: it is empty"),
        ({"config": "/no/such/file"}, {}, "the settings file /no/such/file"),
    ],
)
def test_settings_that_cannot_be_are_refused(
    flags: dict[str, Any], environment: dict[str, str], complaint: str
) -> None:
    with pytest.raises(BadRequest) as refused:
        load(flags, environment)
    assert complaint in refused.value.message


def test_any_address_may_be_used_with_a_token() -> None:
    for host in ("127.0.0.9", "::1", "localhost"):
        assert load({"host": host}, {}).token is None
    assert load({"host": "0.0.0.0", "token": "secret"}, {}).host == "0.0.0.0"


def test_settings_at_their_bounds_are_taken() -> None:
    bounds = {"object_bytes_max": 1 << 29, "frame_bytes_max": 1 << 29, "group_bytes_max": 1 << 29}
    bounds |= {"watch_ms": 1, "gc_interval_ms": 1, "propose_retry_ms": 1, "linger_ms": 0}
    bounds |= {"compact_extents_min": 0, "compact_extent_bytes_max": 0, "compact_wait_ms": 1}
    assert load(bounds, {}).limits == Limits(**bounds)
