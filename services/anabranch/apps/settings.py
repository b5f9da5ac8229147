"""How a process is set up: by flags, by the environment, by a file, in this order.

Settings are structs, and these three say the same of them. A field that is a struct itself is a
table of the file: `[etcd] endpoints`, `--etcd-endpoints`, `ANABRANCH_ETCD_ENDPOINTS`. Limits go by
their own names.
"""

import ipaddress
import tomllib
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast, get_origin

import msgspec

from anabranch.core.belfast.ledger.rules import Rules
from anabranch.core.errors import BadRequest
from anabranch.core.limits import Limits
from anabranch.core.records.record import (
    BATCH_HEADERS_CEILING,
    BATCH_RECORDS_CEILING,
    UNPACKED_BYTES_CEILING,
)
from anabranch.shell.runtime.prose import proses
from anabranch.shell.telemetry.log import LogFormat

PREFIX = "ANABRANCH_"
SECRETS = "secrets"
"""ANABRANCH_SECRETS names a folder in which a file ANABRANCH_TOKEN holds tokens, as Kubernetes
mounts Secrets. Such a file counts instead of the variable of that name.
"""
FILE = "ANABRANCH_CONFIG"
CLIENT_ONLY = frozenset(
    {FILE, *(f"{PREFIX}{name}" for name in ("URL", "PROFILE", "OUTPUT", "TOKEN_FILE"))}
)
"""Variables of this prefix that are not the server's."""

BINARIES = ("_ETCD_BIN", "_VERSITYGW_BIN", "_TOXIPROXY_BIN")
"""How variables end that name a binary to run (`apps/processes/binaries.py`)."""

LIMITS = "limits"

_TOKENS = ("token", "peer_token")
"""Settings that a file of Secrets may stand for."""

_REPEATED = frozenset(
    {"watch_ms", "gc_interval_ms", "propose_retry_ms", "alive_ms", "compact_wait_ms"}
)
"""Intervals: at 0 what they repeat would leave no time for anything else."""

_OPTIONAL = frozenset({"compact_extents_min", "compact_extent_bytes_max"})
"""At 0 they turn something off."""

_RULES_MAY_BE_0 = frozenset({"quota_percent"})

_WRITTEN = frozenset(
    {
        "object_bytes_max",
        "batch_bytes_max",
        "frame_bytes_max",
        "peer_frame_bytes_max",
        "group_bytes_max",
    }
)
_WRITTEN_BYTES_MAX = 1 << 29
"""Formats keep such lengths in 32 bits, and what is journaled must be possible to apply."""

_READABLE = {
    "batch_records_max": BATCH_RECORDS_CEILING,
    "batch_unpacked_bytes_max": UNPACKED_BYTES_CEILING,
    "batch_headers_max": BATCH_HEADERS_CEILING,
}
"""What is appended must be possible to read."""

S = TypeVar("S", bound=msgspec.Struct)


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    data: str = "anabranch-data"
    """The directory that holds everything; it is created if it isn't there."""

    memory: bool = False
    """Keep everything in memory, and nothing after the end."""

    host: str = "127.0.0.1"
    """The address to listen at; any but loopback's needs a token."""

    port: int = 7420
    """Of the binary protocol; 0 takes any free one."""

    http_port: int = 7421
    """Of HTTP; 0 takes any free one, -1 serves none."""

    token: str | None = None
    """What clients must show; none means that whoever reaches the address may do everything."""

    tokens_file: str = ""
    """A file with such tokens instead, one a line; it is read anew when it changes."""

    cluster: str | None = None
    """The name of a new data directory's cluster; an existing one keeps its own."""

    log_format: LogFormat = LogFormat.HUMAN
    """Log lines for people, or one JSON object each."""

    kafka_file: str = ""
    """A TOML file that says how Kafka clusters are reached which ask for TLS or a user, where Erwin
    logs keep their records in Kafka. It is read anew when it changes.
    """

    rules: Rules = Rules()
    """Time and quotas of the Belfast logs that run in this process."""

    limits: Limits = Limits()
    """Every limit and interval, each with its own prose."""

    def __post_init__(self) -> None:
        check_port("port", self.port)
        check_port("http_port", self.http_port, least=-1)
        check_token("token", self.token, self.tokens_file)
        if self.token is None and not self.tokens_file and not is_loopback(self.host):
            raise BadRequest(
                f"host = {self.host}",
                "others than this machine could reach it without a token: set one, or listen at "
                "127.0.0.1",
            )
        check_limits(self.limits)
        check_rules(self.rules)


@dataclass(frozen=True, slots=True)
class Option:
    """One setting, as it is named outside of the file's tables."""

    name: str
    path: tuple[str, ...]
    """The table, if it is in one, and the field."""
    kind: Any
    """The type of its values."""
    default: Any
    """`msgspec.NODEFAULT` if it must be given."""
    owner: type[msgspec.Struct]
    """Whose field it is."""

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()

    @property
    def required(self) -> bool:
        return self.default is msgspec.NODEFAULT

    @property
    def prose(self) -> str:
        return proses(self.owner)[self.path[-1]]


def load(flags: Mapping[str, Any], environment: Mapping[str, str]) -> Settings:
    """The settings of an embedded log."""
    return read(Settings, flags, environment)


def read(
    kind: type[S],
    flags: Mapping[str, Any],
    environment: Mapping[str, str],
    others: Sequence[type[msgspec.Struct]] = (),
) -> S:
    """Flags over the environment over the file; a limit's name is a flag like any other.

    The file is named by ANABRANCH_CONFIG; None as a flag's value means that it wasn't given. What
    only `others` know may stand in the environment and the file, which all of a cluster can share.
    """
    known = {option.name: option for option in options(kind)}
    passed_over = {option.name for other in others for option in options(other)} - known.keys()
    merged: dict[str, Any] = {}
    path = flags.get("config") or environment.get(FILE)
    given = {k: v for k, v in flags.items() if v is not None and k != "config"}
    tables = {*_tables(kind), *(table for other in others for table in _tables(other))}
    sources = (
        (str(path), _flat(_file(path), tables) if path else {}, passed_over),
        ("the environment", _variables(environment, known), passed_over),
        ("the command line", _flat(given, tables), set[str]()),
    )
    for where, values, skipped in sources:
        for name, value in values.items():
            option = known.get(name)
            if option is not None:
                _put(merged, option, value)
            elif name not in skipped:
                raise BadRequest(f"{name} in {where}", "there is no such setting")
    for option in known.values():
        if option.required and not _is_in(merged, option.path):
            reason = f"it must be given: by {option.flag}, {option.variable} or the settings file"
            raise BadRequest(option.name, reason)
    try:
        return msgspec.convert(merged, kind, strict=False)
    except msgspec.ValidationError as error:
        raise BadRequest("settings", str(error)) from None


@cache
def options(kind: type[msgspec.Struct]) -> tuple[Option, ...]:
    """Every setting of a struct of settings, those of its tables in their places."""
    return tuple(_options(kind))


def _options(kind: type[msgspec.Struct]) -> Iterator[Option]:
    for field in msgspec.structs.fields(kind):
        nested = field.type
        if isinstance(nested, type) and issubclass(nested, msgspec.Struct):
            before = "" if field.name == LIMITS else f"{field.name}_"
            for each in options(nested):
                path = (field.name, *each.path)
                yield Option(before + each.name, path, each.kind, each.default, each.owner)
        else:
            default: Any = field.default
            yield Option(field.name, (field.name,), field.type, default, kind)


def check_port(name: str, port: int, least: int = 0) -> None:
    if not least <= port <= 65_535:
        raise BadRequest(f"{name} = {port}", "a port is a number from 0 to 65535")


def check_token(name: str, token: str | None, file: str = "") -> None:
    if token is not None and not token:
        raise BadRequest(name, "it is empty: leave it out, or give one")
    if token is not None and not token.isprintable():
        raise BadRequest(name, "it holds what can't be printed: clients couldn't show it")
    if token is not None and file:
        raise BadRequest(name, f"give {name} or {name}s_file, not both")


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_limits(limits: Limits) -> None:
    """Limits that contradict each other would refuse what they allow."""
    for name in Limits.__struct_fields__:
        value = getattr(limits, name)
        may_be_0 = name in _OPTIONAL or (name.endswith("_ms") and name not in _REPEATED)
        if value < (0 if may_be_0 else 1):
            raise BadRequest(f"{name} = {value}", "it is too small to work with")
        if name in _WRITTEN and value > _WRITTEN_BYTES_MAX:
            reason = f"it is too large: {_WRITTEN_BYTES_MAX} is the most"
            raise BadRequest(f"{name} = {value}", reason)
    for name, most in _READABLE.items():
        if getattr(limits, name) > most:
            raise BadRequest(
                f"{name} = {getattr(limits, name)}", f"it is too large: readers decode up to {most}"
            )
    if limits.record_headers_max > limits.batch_headers_max:
        reason = f"it must not be above batch_headers_max, which is {limits.batch_headers_max}"
        raise BadRequest(f"record_headers_max = {limits.record_headers_max}", reason)
    pairs = (
        ("record_bytes_max", "batch_bytes_max"),
        ("batch_bytes_max", "batch_unpacked_bytes_max"),
        ("batch_bytes_max", "frame_bytes_max"),
    )
    for smaller, larger in pairs:
        if getattr(limits, smaller) >= getattr(limits, larger):
            raise BadRequest(
                f"{smaller} = {getattr(limits, smaller)}",
                f"it must be below {larger}, which is {getattr(limits, larger)}",
            )


def check_rules(rules: Rules) -> None:
    """Numbers that no window could be made with."""
    for name in Rules.__struct_fields__:
        value = getattr(rules, name)
        if type(value) is int and value < (0 if name in _RULES_MAY_BE_0 else 1):
            raise BadRequest(f"rules_{name} = {value}", "it is too small to work with")
    if rules.fail_intervals <= rules.silent_intervals:
        reason = (
            f"it must be above rules_silent_intervals, which is {rules.silent_intervals}: or a "
            "replica's loss would be taken for the whole shard's"
        )
        raise BadRequest(f"rules_fail_intervals = {rules.fail_intervals}", reason)


def _tables(kind: type[msgspec.Struct]) -> Iterator[str]:
    for field in msgspec.structs.fields(kind):
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            yield field.name


def _flat(values: Mapping[str, Any], tables: set[str]) -> dict[str, Any]:
    """Tables taken apart into names as they are elsewhere."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if name in tables and isinstance(value, dict):
            nested = cast("dict[str, Any]", value)
            before = "" if name == LIMITS else f"{name}_"
            flat |= {before + key: each for key, each in nested.items()}
        else:
            flat[name] = value
    return flat


def _put(merged: dict[str, Any], option: Option, value: Any) -> None:
    """A list is written with commas where there are no lists."""
    if isinstance(value, str) and get_origin(option.kind) is tuple:
        value = [each.strip() for each in value.split(",") if each.strip()]
    *tables, field = option.path
    for table in tables:
        merged = merged.setdefault(table, {})
    merged[field] = value


def _is_in(merged: Mapping[str, Any], path: Sequence[str]) -> bool:
    for name in path:
        if name not in merged:
            return False
        merged = merged[name]
    return True


def _file(path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    # Also a number of thousands of digits, and lists inside of lists without an end.
    except (OSError, ValueError, RecursionError) as error:
        raise BadRequest(f"the settings file {path}", str(error)) from None


def _variables(environment: Mapping[str, str], known: Container[str]) -> dict[str, Any]:
    """By name; the tokens that the folder of Secrets holds take the places of their variables."""
    found = {
        name.removeprefix(PREFIX).lower(): value
        for name, value in environment.items()
        if name.startswith(PREFIX) and name not in CLIENT_ONLY and not name.endswith(BINARIES)
    }
    folder = found.pop(SECRETS, "")
    for name in _TOKENS if folder else ():
        file = Path(folder, PREFIX + name.upper())
        if f"{name}s_file" in known and file.is_file():
            found.pop(name, None)
            found[f"{name}s_file"] = str(file)
    return found
