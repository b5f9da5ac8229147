"""How an embedded log is set up: by flags, by the environment, by a file, in this order."""

import ipaddress
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from anabranch.core.errors import BadRequest
from anabranch.core.limits import Limits
from anabranch.shell.log import LogFormat

PREFIX = "ANABRANCH_"
FILE = "ANABRANCH_CONFIG"
CLIENT_ONLY = frozenset({FILE, "ANABRANCH_URL", "ANABRANCH_OUTPUT"})
"""Variables of this prefix that are not the server's."""

BINARIES = ("_ETCD_BIN", "_VERSITYGW_BIN", "_TOXIPROXY_BIN")
"""How variables end that name a binary to run (`apps/processes/binaries.py`)."""

LIMITS = "limits"

_REPEATED = frozenset({"watch_ms", "gc_interval_ms", "propose_retry_ms"})
"""Intervals: at 0 what they repeat would leave no time for anything else."""

_WRITTEN = frozenset({"object_bytes_max", "batch_bytes_max", "frame_bytes_max", "group_bytes_max"})
_WRITTEN_BYTES_MAX = 1 << 29
"""Formats keep such lengths in 32 bits, and what is journaled must be possible to apply."""


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

    cluster: str | None = None
    """The name of a new data directory's cluster; an existing one keeps its own."""

    log_format: LogFormat = LogFormat.HUMAN
    """Log lines for people, or one JSON object each."""

    limits: Limits = Limits()
    """Every limit and interval, each with its own prose."""

    def __post_init__(self) -> None:
        for name, port in (("port", self.port), ("http_port", self.http_port)):
            if not -1 <= port <= 65_535 or (name == "port" and port < 0):
                raise BadRequest(f"{name} = {port}", "a port is a number from 0 to 65535")
        if self.token is not None and not self.token:
            raise BadRequest("token", "it is empty: leave it out, or give one")
        if self.token is None and not _is_loopback(self.host):
            raise BadRequest(
                f"host = {self.host}",
                "others than this machine could reach it without a token: set one, or listen at "
                "127.0.0.1",
            )
        _check(self.limits)


def load(flags: Mapping[str, Any], environment: Mapping[str, str]) -> Settings:
    """Flags over the environment over the file; a limit's name is a flag like any other.

    The file is named by ANABRANCH_CONFIG; None as a flag's value means that it wasn't given.
    """
    merged: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    path = flags.get("config") or environment.get(FILE)
    given = {k: v for k, v in flags.items() if v is not None and k != "config"}
    sources = (
        (str(path), _file(path) if path else {}),
        ("the environment", _variables(environment)),
        ("the command line", given),
    )
    for where, values in sources:
        nested = values.pop(LIMITS, {})
        for name, value in {**values, **nested}.items():
            if name in Settings.__struct_fields__ and name != LIMITS:
                merged[name] = value
            elif name in Limits.__struct_fields__:
                limits[name] = value
            else:
                raise BadRequest(f"{name} in {where}", "there is no such setting")
    try:
        return msgspec.convert({**merged, LIMITS: limits}, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise BadRequest("settings", str(error)) from None


def _file(path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadRequest(f"the settings file {path}", str(error)) from None


def _variables(environment: Mapping[str, str]) -> dict[str, Any]:
    return {
        name.removeprefix(PREFIX).lower(): value
        for name, value in environment.items()
        if name.startswith(PREFIX) and name not in CLIENT_ONLY and not name.endswith(BINARIES)
    }


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check(limits: Limits) -> None:
    """Limits that contradict each other would refuse what they allow."""
    for name in Limits.__struct_fields__:
        value = getattr(limits, name)
        if value < (0 if name.endswith("_ms") and name not in _REPEATED else 1):
            raise BadRequest(f"{name} = {value}", "it is too small to work with")
        if name in _WRITTEN and value > _WRITTEN_BYTES_MAX:
            reason = f"it is too large: {_WRITTEN_BYTES_MAX} is the most"
            raise BadRequest(f"{name} = {value}", reason)
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
