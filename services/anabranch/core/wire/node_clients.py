"""What the client protocols of all engines share whose clients ask a log's nodes themselves."""

from typing import Any, NoReturn, Protocol, TypeVar

from msgspec.structs import replace

from anabranch.core.errors import AnabranchError, VersionMismatch, WrongCluster


class NodeHello(Protocol):
    """A client says which node of which log it means."""

    @property
    def version(self) -> int: ...

    @property
    def cluster(self) -> str: ...

    @property
    def node(self) -> str: ...


class NodeWelcome(NodeHello, Protocol):
    """A node says which one it is."""


def node_of(hello: NodeHello) -> str:
    """`ClientProtocol.node`."""
    return hello.node


def objection(hello: NodeHello, welcome: NodeWelcome) -> AnabranchError | None:
    """`ClientProtocol.objection`: another version, or the node of another log."""
    if hello.version != welcome.version:
        return VersionMismatch(hello.version, welcome.version)
    if hello.cluster != welcome.cluster:
        return WrongCluster(f"node {welcome.node}", welcome.cluster, hello.cluster)
    return None


class Windowed(Protocol):
    """A subscription."""

    @property
    def window_bytes(self) -> int: ...


W = TypeVar("W", bound=Any)


def window_of(message: Windowed) -> int:
    """`ClientProtocol.window`."""
    return message.window_bytes


def with_window(message: W, window: int) -> W:
    """`ClientProtocol.with_window`."""
    return replace(message, window_bytes=window)


class Unstreamed:
    """Stands for the types of streams where nodes have none."""


def no_stream(*_: Any) -> NoReturn:
    """`ClientProtocol.window` and `with_window` where nodes have no streams."""
    raise AssertionError("these nodes have no streams")
