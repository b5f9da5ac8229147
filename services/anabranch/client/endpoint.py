"""Where a service listens: `anabranch://[token@]host[:port][,host[:port]...]`.

Several hosts are brokers of one pool: any of them tells who the others are. `anabranchs://` is the
same over TLS; `?ca=FILE` names the authority that the servers' certificates are checked by, `cert`
and `key` what to show them.
"""

from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from anabranch.core.errors import BadRequest
from anabranch.shell.tls import TlsSettings

SCHEME = "anabranch"
TLS_SCHEME = "anabranchs"
PORT = 7420

_FILES = ("ca", "cert", "key")


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

    @property
    def scheme(self) -> str:
        return SCHEME if self.tls is None else TLS_SCHEME

    def __str__(self) -> str:
        """Without the token: this is shown and logged."""
        files = {name: getattr(self.tls, name, "") for name in _FILES}
        query = urlencode({name: file for name, file in files.items() if file}, quote_via=quote)
        hosts = ",".join(map(str, self.addresses))
        return f"{self.scheme}://{hosts}" + (f"?{query}" if query else "")


def endpoint(url: str) -> Endpoint:
    """The scheme may be left out."""
    what = f"the address {url!r}"
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
    if query and (parts.scheme != TLS_SCHEME or not set(query).issubset(_FILES)):
        known = ", ".join(_FILES)
        raise BadRequest(what, f"only {TLS_SCHEME}:// takes parameters after '?': {known}")
    addresses = tuple(address(each, what) for each in hosts.split(","))
    tls = TlsSettings(**query) if parts.scheme == TLS_SCHEME else None
    return Endpoint(addresses, parts.username or None, tls)


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
    return Address(parts.hostname, PORT if port is None else port)
