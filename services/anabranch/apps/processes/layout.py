"""Where the processes of a local cluster are, and by which names: kept, so that it comes back as it
was.
"""

import os
import secrets
from pathlib import Path
from typing import TypeVar

import msgspec

from anabranch.apps.processes.ports import HOST, free_ports
from anabranch.core.errors import BadRequest
from anabranch.shell.journal.disk import sync_directory

FILE = "cluster.json"
BUCKET = "anabranch"

L = TypeVar("L", bound=msgspec.Struct)
C = TypeVar("C", bound=msgspec.Struct)


class Pair(msgspec.Struct, frozen=True):
    """A pod's two ports: of its work and of its probes."""

    port: int
    probes: int
    host: str = HOST

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    cluster: str
    etcd: list[int]
    """Three ports a member."""
    s3_port: int
    s3_secret: str
    metadata: list[Pair]
    brokers: list[Pair]
    gateway: Pair
    bucket: str = BUCKET

    @property
    def etcd_addresses(self) -> tuple[str, ...]:
        """Of its members, for clients."""
        return tuple(f"{HOST}:{port}" for port in self.etcd[::3])

    @property
    def url(self) -> str:
        return "anabranch://" + ",".join(broker.address for broker in self.brokers)

    @property
    def members(self) -> str:
        return ",".join(member.address for member in self.metadata)


class Shape(msgspec.Struct, frozen=True):
    """How many processes there are of each kind; None leaves a folder's own number, or takes the
    default for a new one.
    """

    etcd: int | None = None
    metadata: int | None = None
    brokers: int | None = None


class Counts(msgspec.Struct, frozen=True):
    etcd: int = 1
    metadata: int = 3
    brokers: int = 4


def settle(folder: Path, shape: Shape) -> Layout:
    """The one that this folder has, or a new one."""
    path = folder / FILE
    if path.exists():
        found = read(path, Layout)
        there = Counts(len(found.etcd) // 3, len(found.metadata), len(found.brokers))
        wanted = asked(shape, there)
        if there.etcd != wanted.etcd:
            reason = f"it has {there.etcd} members of etcd, which can't become {wanted.etcd} here"
            raise BadRequest(f"the cluster in {folder}", reason)
        if there == wanted:
            return found
        layout = _resized(found, wanted)
    else:
        layout = _new(asked(shape, Counts()))
    return kept(path, layout)


def asked(shape: msgspec.Struct, there: C) -> C:
    """The numbers that were asked for, and those that are there where none was."""
    given = {name: n for name, n in msgspec.structs.asdict(shape).items() if n is not None}
    return msgspec.structs.replace(there, **given)


def read(path: Path, layout: type[L]) -> L:
    """Raises BadRequest for a file that was damaged, or that is none of these."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=layout)
    except (OSError, UnicodeDecodeError, msgspec.DecodeError) as error:
        raise BadRequest(str(path), f"it can't be read ({error}), and says where all is") from None


def kept(path: Path, layout: L) -> L:
    """Written there, whole, and durably: without it the folder is worth little."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.touch(mode=0o600)
    with part.open("wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(layout)))
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    sync_directory(str(path.parent))
    return layout


def pairs(count: int) -> list[Pair]:
    """Of ports that nobody uses now."""
    return _pairs(free_ports(2 * count)) if count else []


def _new(shape: Counts) -> Layout:
    ports = free_ports(3 * shape.etcd + 1 + 2 * (shape.metadata + shape.brokers + 1))
    etcd, rest = ports[: 3 * shape.etcd], ports[3 * shape.etcd :]
    pods = _pairs(rest[1:])
    return Layout(
        cluster=f"local-{secrets.token_hex(4)}",
        etcd=etcd,
        s3_port=rest[0],
        s3_secret=secrets.token_hex(20),
        metadata=pods[: shape.metadata],
        brokers=pods[shape.metadata : -1],
        gateway=pods[-1],
    )


def _resized(layout: Layout, shape: Counts) -> Layout:
    """Pods come and go; what keeps data stays."""
    metadata = layout.metadata[: shape.metadata]
    brokers = layout.brokers[: shape.brokers]
    more = (shape.metadata - len(metadata)) + (shape.brokers - len(brokers))
    added = pairs(more)
    split = shape.metadata - len(metadata)
    return msgspec.structs.replace(
        layout, metadata=[*metadata, *added[:split]], brokers=[*brokers, *added[split:]]
    )


def _pairs(ports: list[int]) -> list[Pair]:
    return [Pair(ports[at], ports[at + 1]) for at in range(0, len(ports), 2)]
