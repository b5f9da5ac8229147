"""Where black boxes are, as people write it: `kafka://HOST:PORT/TOPIC`."""

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from ipaddress import IPv6Address

from anabranch.core.errors import BadRequest

ADDRESS_CHARS_MAX, NAME_CHARS_MAX = 400, 200
"""Of a log's address; those of its shards are a number longer."""
_NUMBER_CHARS_MAX = 10
_HOST = r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}"
_URL = re.compile(rf"(kafka|anabranch)://({_HOST}(?:,{_HOST})*)/([A-Za-z0-9._-]+)", re.ASCII)
_LABEL = re.compile(r"[A-Za-z0-9_-]{1,63}", re.ASCII)
_HOST_CHARS_MAX = 253
_FORMS = "kafka://HOST:PORT/TOPIC or anabranch://HOST:PORT/LOG"


class BlackBoxKind(StrEnum):
    KAFKA = "kafka"
    BOLT = "anabranch"


@dataclass(frozen=True, slots=True)
class BlackBoxAddress:
    kind: BlackBoxKind
    servers: tuple[str, ...]
    """`host:port`; of Kafka, brokers to ask first."""
    name: str
    """Of the topic or the log. In a log's settings it is what shards' names begin with: shard N has
    `NAME-N`.
    """

    @staticmethod
    def parse(text: str) -> "BlackBoxAddress":
        """Raises BadRequest."""
        if "@" in text:
            # The catalogue is shown to everybody who may look at the log.
            raise BadRequest("the black box's address", "it can't hold a user or a password")
        fits = len(text) <= ADDRESS_CHARS_MAX + _NUMBER_CHARS_MAX
        found = _URL.fullmatch(text) if fits else None
        if found is None or len(found[3]) > NAME_CHARS_MAX + _NUMBER_CHARS_MAX:
            raise BadRequest(f"the black box {text[:ADDRESS_CHARS_MAX]!r}", f"it is {_FORMS}")
        kind, servers = BlackBoxKind(found[1]), tuple(found[2].split(","))
        if kind is BlackBoxKind.BOLT and len(servers) > 1:
            raise BadRequest("the black box's address", "a Bolt log has one server or gateway")
        for server in servers:
            _check_server(server)
        return BlackBoxAddress(kind, servers, found[3])

    @staticmethod
    def of_log(text: str) -> "BlackBoxAddress":
        """Raises BadRequest, also if the addresses of its shards would be too long."""
        found = BlackBoxAddress.parse(text)
        if len(text) > ADDRESS_CHARS_MAX or len(found.name) > NAME_CHARS_MAX:
            most = f"it may have {ADDRESS_CHARS_MAX} characters, its name {NAME_CHARS_MAX}"
            raise BadRequest(f"the black box {text!r}", most)
        return found

    def of_shard(self, number: int) -> "BlackBoxAddress":
        """The topic or the log of this shard alone."""
        return replace(self, name=f"{self.name}-{number}")

    def __str__(self) -> str:
        return f"{self.kind}://{','.join(self.servers)}/{self.name}"


def _check_server(server: str) -> None:
    """Raises BadRequest for a server that no resolver and no socket would take."""
    host, _, port = server.rpartition(":")
    if not 1 <= int(port) <= 65_535:
        raise BadRequest(f"the black box's server {server!r}", "a port is from 1 to 65535")
    if not _is_host(host):
        raise BadRequest(f"the black box's server {server!r}", "it isn't the name of a host")


def _is_host(host: str) -> bool:
    if host.startswith("["):
        try:
            IPv6Address(host[1:-1])
        except ValueError:
            return False
        return True
    labels = host.removesuffix(".").split(".")
    return len(host) <= _HOST_CHARS_MAX and all(map(_LABEL.fullmatch, labels))
