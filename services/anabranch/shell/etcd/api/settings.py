"""Where etcd is; apart from its client, whose packages not every process has."""

import msgspec


class EtcdSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where etcd is, and what it takes to be let in."""

    endpoints: tuple[str, ...] = ("127.0.0.1:2379",)
    """Every member's client address, as `host:port` or with `http://` or `https://` before it."""

    user: str = ""
    """The etcd user, if etcd asks for one."""

    password: str = ""
    """That user's password."""

    ca: str = ""
    """File with the certificates that etcd's is checked against; with it, TLS is spoken."""

    cert: str = ""
    """File with our own certificate, if etcd asks for one."""

    key: str = ""
    """File with the private key of our own certificate."""

    deadline_ms: int = 3_000
    """How long one call to one member may take."""
