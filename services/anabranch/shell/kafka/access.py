"""How Kafka clusters are reached that ask for TLS or for a user: a file that its readers keep to
themselves (decision 66).

    [[kafka]]
    servers = ["kafka-1:9093", "kafka-2:9093"]
    tls = true
    ca = "ca.crt"
    mechanism = "SCRAM-SHA-512"
    user = "audit"
    password_file = "password"

A user is shown to the servers that are named beside it and to no other: whoever may create a log
chooses the address of its black box, and must not choose who learns a password.
"""

import ssl
import tomllib
from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from anabranch.core.errors import BadRequest
from anabranch.shell.net.reload import Renewed

_BYTES_MAX = 1 << 20
"""Of a file that is read here."""


class Mechanism(StrEnum):
    """How a user proves who it is (SASL)."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"


class KafkaCluster(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One cluster, as the file has it. Files are named from the file's own folder on."""

    servers: tuple[str, ...]
    """`host:port` of the brokers that addresses of black boxes may name."""
    tls: bool = False
    ca: str = ""
    """File with the authority that the brokers' certificates are checked by, in PEM; empty: those
    that this machine trusts.
    """
    cert: str = ""
    """File with the certificate to show, if the brokers ask for one."""
    key: str = ""
    """File with the private key of that certificate."""
    mechanism: Mechanism | None = None
    user: str = ""
    password: str = ""
    user_file: str = ""
    """File with the user's name instead."""
    password_file: str = ""
    """File with the password instead."""


class _Content(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kafka: tuple[KafkaCluster, ...] = ()


class KafkaAccess:
    """What it takes to be let in by the cluster of some servers, read anew when files change."""

    def __init__(self, servers: Sequence[str], file: str = "") -> None:
        """Raises BadRequest. `file`: where it says so; empty: nothing but an address is needed."""
        self._servers = tuple(servers)
        self._renewed: Renewed[dict[str, Any]] | None = None
        if not file:
            return
        cluster = _cluster(file, self._servers)
        if cluster is None:
            return
        used = (cluster.ca, cluster.cert, cluster.key, cluster.user_file, cluster.password_file)
        files = (file, *(str(_beside(file, each)) for each in used if each))
        self._renewed = Renewed(files, partial(_options, file, self._servers), None)

    @property
    def changes(self) -> bool:
        """Whether there are files that may change."""
        return self._renewed is not None

    def current(self) -> dict[str, Any]:
        """Arguments of aiokafka's clients; another dictionary after a change."""
        return _PLAINTEXT if self._renewed is None else self._renewed.current()


_PLAINTEXT: dict[str, Any] = {}


def check(file: str) -> None:
    """Raises BadRequest for a file that can't be used."""
    for cluster in _read(file).kafka:
        _made(file, cluster)


def _options(file: str, servers: tuple[str, ...]) -> dict[str, Any]:
    cluster = _cluster(file, servers)
    return {} if cluster is None else _made(file, cluster)


def _cluster(file: str, servers: tuple[str, ...]) -> KafkaCluster | None:
    """None if the file doesn't speak of these servers."""
    for cluster in _read(file).kafka:
        known = set(cluster.servers)
        if known.issuperset(servers):
            return cluster
        if known.intersection(servers):
            strange = ", ".join(each for each in servers if each not in known)
            reason = f"it says how to reach some of the servers, but not {strange}: add them there"
            raise BadRequest(f"the Kafka access file {file}", reason)
    return None


def _made(file: str, cluster: KafkaCluster) -> dict[str, Any]:
    where = f"{','.join(cluster.servers)} in the Kafka access file {file}"
    _check(where, cluster)
    made: dict[str, Any] = {"security_protocol": "SASL_" if cluster.mechanism else ""}
    made["security_protocol"] += "SSL" if cluster.tls else "PLAINTEXT"
    if cluster.tls:
        made["ssl_context"] = _context(where, file, cluster)
    if cluster.mechanism is not None:
        made["sasl_mechanism"] = cluster.mechanism.value
        made["sasl_plain_username"] = cluster.user or _secret(file, cluster.user_file)
        made["sasl_plain_password"] = cluster.password or _secret(file, cluster.password_file)
    return made


def _check(where: str, cluster: KafkaCluster) -> None:
    named = bool(cluster.user) + bool(cluster.user_file)
    secrets = bool(cluster.password) + bool(cluster.password_file)
    if not cluster.servers:
        raise BadRequest(where, "a cluster has no servers: name its brokers, host:port")
    if cluster.mechanism is not None and (named, secrets) != (1, 1):
        reason = "give user or user_file, and password or password_file, for its mechanism"
        raise BadRequest(where, reason)
    if cluster.mechanism is None and (named or secrets):
        reason = f"a user needs a mechanism: {', '.join(Mechanism)}"
        raise BadRequest(where, reason)
    if cluster.mechanism is Mechanism.PLAIN and not cluster.tls:
        reason = "PLAIN would send the password to anybody on the way: set tls = true"
        raise BadRequest(where, reason)
    if not cluster.tls and (cluster.ca or cluster.cert or cluster.key):
        raise BadRequest(where, "ca, cert and key are for tls = true")
    if bool(cluster.cert) != bool(cluster.key):
        raise BadRequest(where, "give both of cert and key, or neither")


def _context(where: str, file: str, cluster: KafkaCluster) -> ssl.SSLContext:
    authority = str(_beside(file, cluster.ca)) if cluster.ca else None
    try:
        context = ssl.create_default_context(cafile=authority)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if cluster.cert:
            context.load_cert_chain(_beside(file, cluster.cert), _beside(file, cluster.key))
    except (OSError, ValueError) as error:
        raise BadRequest(where, f"its certificates can't be used: {error}") from None
    return context


def _secret(file: str, name: str) -> str:
    found = _text(_beside(file, name)).removesuffix("\n").removesuffix("\r")
    if not found:
        raise BadRequest(f"the file {_beside(file, name)}", "it is empty")
    return found


def _read(file: str) -> _Content:
    what = f"the Kafka access file {file}"
    try:
        return msgspec.convert(tomllib.loads(_text(Path(file))), _Content)
    # Also a number of thousands of digits, and lists inside of lists without an end.
    except (ValueError, RecursionError) as error:
        # Of a value that doesn't fit, the error has the kind and not the value.
        reason = "it isn't TOML" if isinstance(error, tomllib.TOMLDecodeError) else str(error)
        raise BadRequest(what, reason) from None


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as opened:
            return opened.read(_BYTES_MAX)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it isn't UTF-8"
        raise BadRequest(f"the file {path}", reason or type(error).__name__) from None


def _beside(file: str, name: str) -> Path:
    return Path(file).parent / name
