"""Where a service listens: `anabranch://[token@]host[:port][,host[:port]...]`.

Several hosts are brokers of one pool: any of them tells who the others are. `?token_file=FILE`
holds the token, and is read for each connection. `anabranchs://` is the same over TLS; `ca=FILE`
names the authority that the servers' certificates are checked by, `cert` and `key` what to show
them, `server_name` what the certificates must be made for, if that isn't the host that is dialed.
"""

from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from anabranch.client.session.arguments import text
from anabranch.core.errors import BadRequest
from anabranch.shell.net.tls import TlsSettings

SCHEME = "anabranch"
TLS_SCHEME = "anabranchs"
PORT = 7420

_FILES = ("ca", "cert", "key")
_TLS = (*_FILES, "server_name")
_ANY = ("token_file",)


class Address(NamedTuple):
    """Where one server listens."""

    host: str
    port: int = PORT

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class Endpoint(NamedTuple):
    """Where a service listens, and how to be let in."""

    addresses: tuple[Address, ...]
    token: str | None = None
    tls: TlsSettings | None = None
    token_file: str = ""
    server_name: str | None = None

    @property
    def scheme(self) -> str:
        return SCHEME if self.tls is None else TLS_SCHEME

    def __str__(self) -> str:
        """Without the token: this is shown and logged."""
        given = {name: getattr(self.tls, name, "") for name in _FILES}
        given |= {"server_name": self.server_name, "token_file": self.token_file}
        query = urlencode({name: each for name, each in given.items() if each}, quote_via=quote)
        hosts = ",".join(map(str, self.addresses))
        return f"{self.scheme}://{hosts}" + (f"?{query}" if query else "")


def endpoint(url: str, what: str = "") -> Endpoint:
    """The scheme may be left out. `what` says in errors what the caller was given."""
    what = what or f"the address {text('an address', url)!r}"
    full = url if "://" in url else f"{SCHEME}://{url}"
    try:
        parts = urlsplit(full)
        query = dict(
            parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        )
    except ValueError as error:
        raise BadRequest(what, str(error)) from None
    if parts.scheme not in (SCHEME, TLS_SCHEME):
        raise BadRequest(what, f"its scheme must be {SCHEME} or, over TLS, {TLS_SCHEME}")
    hosts = parts.netloc.rpartition("@")[2]
    if not hosts or parts.path.strip("/") or parts.fragment:
        raise BadRequest(what, f"it must read {SCHEME}://host:port, or host:port,host:port,...")
    over_tls = parts.scheme == TLS_SCHEME
    known = (*_ANY, *_TLS) if over_tls else _ANY
    if not set(query).issubset(known):
        reason = f"what may stand after '?' is {', '.join(known)}"
        raise BadRequest(what, reason if over_tls else f"{reason}; the rest is {TLS_SCHEME}://'s")
    if query.get("token_file") and parts.username:
        raise BadRequest(what, "give a token or a token_file, not both")
    return Endpoint(
        tuple(address(each, what) for each in hosts.split(",")),
        parts.username or None,
        TlsSettings(**{name: query.get(name, "") for name in _FILES}) if over_tls else None,
        query.get("token_file", ""),
        query.get("server_name") or None,
    )


def address(text: str, what: str = "") -> Address:
    """`host[:port]`, as in a URL and as brokers are advertised."""
    what = what or f"the address {text!r}"
    try:
        parts = urlsplit(f"//{text}")
        port = parts.port
    except ValueError as error:
        raise BadRequest(what, str(error)) from None
    if not parts.hostname or parts.netloc != text or "@" in text:
        raise BadRequest(what, f"{text!r} isn't host:port")
    try:
        parts.hostname.encode("idna")
    except UnicodeError:
        raise BadRequest(what, f"{parts.hostname!r} isn't the name of a host") from None
    return Address(parts.hostname, PORT if port is None else port)
