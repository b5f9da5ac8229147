"""What is set up alike for every process of a cluster, whichever engine it runs."""

import socket

import msgspec

from anabranch.apps import settings
from anabranch.core.errors import BadRequest
from anabranch.core.limits import Limits
from anabranch.shell.net.connect import is_address
from anabranch.shell.telemetry.log import LogFormat


class ProcessSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What members, brokers, sequencers and shards have in common."""

    cluster: str
    """The cluster's name: on its disks, in etcd, in the bucket, whenever two processes meet."""

    name: str = ""
    """This process's, unlike any other's of its kind; empty: the host's name."""

    host: str = "127.0.0.1"
    """The address to listen at; any but loopback's needs a token, or certificates."""

    announce: str = ""
    """A file to write where this process is found, once it listens; gone when it doesn't."""

    log_format: LogFormat = LogFormat.JSON
    """Log lines for people, or one JSON object each."""

    patience_ms: int = 15_000
    """How long what it needs may be missing at the start, before this process ends."""

    failpoints: str = ""
    """Places to fail at, for tests (`shell/runtime/failpoints.py`)."""

    limits: Limits = Limits()
    """Every limit and interval, each with its own prose."""

    @property
    def node(self) -> str:
        return self.name or socket.gethostname()

    def check(self, port: int, probe_port: int) -> None:
        settings.check_port("port", port)
        settings.check_port("probe_port", probe_port, least=-1)
        settings.check_limits(self.limits)
        if not self.cluster:
            raise BadRequest("cluster", "it is empty: name the cluster")


def check_address(text: str) -> None:
    if not is_address(text):
        raise BadRequest(f"address {text!r}", "write it as host:port")
