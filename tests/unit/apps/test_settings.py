"""Settings come from three places, and none of them may say what can't be."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from anabranch.apps.pods.bolt_settings import BrokerSettings, GatewaySettings, MetadataSettings
from anabranch.apps.pods.log_settings import SequencerSettings, ShardSettings
from anabranch.apps.settings import Settings, is_loopback, load, options, read
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
        ({"batch_records_max": 500_001}, {}, "batch_records_max = 500001: it is too large"),
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


KINDS: tuple[type[Any], ...] = (
    Settings,
    MetadataSettings,
    BrokerSettings,
    GatewaySettings,
    SequencerSettings,
    ShardSettings,
)
REQUIRED = {
    "cluster": "c",
    "s3_bucket": "b",
    "metadata": "a:1",
    "service": "a:1",
    "data": "/d",
    "sequencers": "a:1",
    "shard": "s",
}
ODD = ("", " ", "x", "-1", "1.5", "1e400", "nan", "true", ",", "\0", "é", "9" * 30, "9" * 5_000)


def least(kind: type[Any]) -> dict[str, Any]:
    """What must be given of these settings."""
    return {each.name: REQUIRED[each.name] for each in options(kind) if each.required}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_text_of_any_setting_ends_a_process_with_a_traceback(kind: type[Any]) -> None:
    for option in options(kind):
        if option.path[0] == "limits" and kind is not Settings:
            continue  # all kinds have the same ones
        for text in ODD:
            for flags, environment in (({option.name: text}, {}), ({}, {option.variable: text})):
                with suppress(BadRequest):
                    read(kind, {**least(kind), **flags}, environment)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_setting_can_be_given_in_three_ways(kind: type[Any], tmp_path: Path) -> None:
    """A value that the setting has anyway, or another where that is known to be fine."""
    file = tmp_path / "settings.toml"
    for option in options(kind):
        value = option.default if type(option.default) in {int, str, bool} else None
        if value is None or value == "":
            continue
        *tables, field = option.path
        head = "".join(f"{name} = {json.dumps(text)}\n" for name, text in _flat(least(kind)))
        nested = "[s3]\nbucket = 'b'\n" * ("s3_bucket" in least(kind))
        table = "" if not tables else f"[{'.'.join(tables)}]\n"
        own = f"{field} = {json.dumps(value)}\n"
        if tables and tables[0] == "s3":
            file.write_text(f"{head}{nested}{own}")
        elif tables:
            file.write_text(f"{head}{nested}{table}{own}")
        else:
            lines = head.replace(f"{field} = {json.dumps(least(kind).get(field))}\n", "")
            file.write_text(f"{lines}{own}{nested}")
        text = str(value).lower() if isinstance(value, bool) else str(value)
        by_file = read(kind, {"config": str(file)}, {})
        assert by_file == read(kind, {**least(kind), option.name: text}, {}), option.name
        assert by_file == read(kind, least(kind), {option.variable: text}), option.name


def _flat(required: dict[str, Any]) -> list[tuple[str, Any]]:
    """Of the file: names of lists have lists there, and the bucket stands in its table."""
    lists = {"metadata", "sequencers"}
    given = [(name, value) for name, value in required.items() if name != "s3_bucket"]
    return [(name, [value] if name in lists else value) for name, value in given]


@pytest.mark.parametrize(
    "content",
    [
        "port",
        "port = ",
        "port = 1\nport = 2",
        "[limits",
        "limits = 5",
        "[limits]\nlinger_ms = [1]",
        "[limits]\nlinger_ms = 2026-01-01",
        "[port]\nx = 1",
        f"port = {'9' * 5_000}",
        f"port = {'9' * 30}",
        "port = 1.5",
        'port = "many"',
        f"a = {'[' * 5_000}",
        "[nowhere]\nx = 1",
    ],
)
def test_a_file_that_can_not_be_is_refused_with_a_sentence(tmp_path: Path, content: str) -> None:
    file = tmp_path / "up.toml"
    file.write_text(content)
    with pytest.raises(BadRequest):
        load({"config": str(file)}, {})


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "up.toml"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(BadRequest, match=str(file)):
        load({"config": str(file)}, {})
    with pytest.raises(BadRequest, match=str(tmp_path)):
        load({"config": str(tmp_path)}, {})


@given(st.sampled_from(Limits.__struct_fields__), st.integers(-3, 1 << 40))
def test_a_limit_is_taken_whole_or_refused_by_its_name(name: str, value: int) -> None:
    try:
        limits = load({name: value}, {}).limits
    except BadRequest:
        # A limit that contradicts another may be named beside that one.
        with pytest.raises(BadRequest, match=name):
            load({name: value}, {})
    else:
        assert getattr(limits, name) == value >= 0
        assert limits == replace(Limits(), **{name: value})


@given(st.dictionaries(st.sampled_from(["port", "http_port", "linger_ms"]), st.integers(0, 9)))
def test_what_stands_nearer_to_the_command_counts(flags: dict[str, int]) -> None:
    environment = {"ANABRANCH_PORT": "11", "ANABRANCH_LINGER_MS": "12"}
    found = load(flags, environment)
    assert found.port == flags.get("port", 11)
    assert found.http_port == flags.get("http_port", Settings().http_port)
    assert found.limits.linger_ms == flags.get("linger_ms", 12)


@pytest.mark.parametrize("name", ["URL", "PROFILE", "OUTPUT", "TOKEN_FILE", "ETCD_BIN"])
def test_variables_of_clients_and_of_binaries_are_no_settings(name: str) -> None:
    assert load({}, {f"ANABRANCH_{name}": "anything"}) == Settings()


def test_tokens_of_a_folder_of_secrets_take_the_places_of_variables(tmp_path: Path) -> None:
    (tmp_path / "ANABRANCH_TOKEN").write_text("secret\n")
    folder = {"ANABRANCH_SECRETS": str(tmp_path), "ANABRANCH_TOKEN": "of the environment"}
    found = load({}, folder)
    assert (found.token, found.tokens_file) == (None, str(tmp_path / "ANABRANCH_TOKEN"))
    (tmp_path / "ANABRANCH_TOKEN").unlink()
    assert load({}, folder).token == "of the environment"


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("rules_t_ord_us", "0", "rules_t_ord_us = 0: it is too small"),
        ("rules_window", "-1", "rules_window = -1: it is too small"),
        ("rules_fail_intervals", "1", "rules_fail_intervals = 1: it must be above"),
        ("token", "a\nb", "token: it holds what can't be printed"),
    ],
)
def test_what_no_log_could_work_with_is_refused_by_its_name(
    name: str, value: str, complaint: str
) -> None:
    with pytest.raises(BadRequest) as refused:
        load({name: value}, {})
    assert complaint in refused.value.message


def test_a_token_and_a_file_of_tokens_are_one_too_many() -> None:
    with pytest.raises(BadRequest, match="give token or tokens_file, not both"):
        load({"token": "t", "tokens_file": "/f"}, {})


@pytest.mark.parametrize(
    ("host", "own"),
    [
        *(("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True)),
        *(("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("localhost.x", False)),
        *(("", False), ("127.0.0.1.example", False), ("2130706433", False)),
    ],
)
def test_only_this_machine_is_let_in_without_a_token(host: str, own: bool) -> None:
    assert is_loopback(host) == own
