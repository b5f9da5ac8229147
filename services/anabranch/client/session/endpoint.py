"""Where a service listens: `anabranch://[token@]host[:port][,host[:port]...]`.

Several hosts are brokers of one pool: any of them tells who the others are. `?token_file=FILE`
holds the token, and is read for each connection. `anabranchs://` is the same over TLS; `ca=FILE`
names the authority that the servers' certificates are checked by, `cert` and `key` what to show
them, `server_name` what the certificates must be made for, if that isn't the host that is dialed.

A Belfast deployment by itself is `belfast://[token@]host:port[,host:port...]/CLUSTER`, or
`belfasts://`, with the same options. Its hosts are any of its sequencers and shards.
"""

from typing import NamedTuple
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit

from anabranch.client.session.arguments import text
from anabranch.core.errors import BadRequest
from anabranch.shell.net.tls import TlsSettings

SCHEME = "anabranch"
TLS_SCHEME = "anabranchs"
BELFAST_SCHEME = "belfast"
BELFAST_TLS_SCHEME = "belfasts"
ERWIN_SCHEME = "erwin"
ERWIN_TLS_SCHEME = "erwins"
PORT = 7420

WITHIN = "/"
"""Begins the name of a server that is one of several at the address of the service itself."""

_FILES = ("ca", "cert", "key")
_TLS = (*_FILES, "server_name")
_ANY = ("token_file",)

_A_DEPLOYMENT = (
    "it is a Belfast log by itself and no service: `anabranch belfast append`, `tail`, `top` and "
    "`status` take it, and anabranch.belfast.connect()"
)
_A_SERVICE = (
    "it is a service, whose Belfast logs are used by name: `anabranch append LOG`, `tail LOG`, "
    "`status LOG`, `belfast windows --log LOG`, and anabranch.connect(url).log(name)"
)


class Address(NamedTuple):
    """Where one server listens."""

    host: str
    port: int = PORT

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class Endpoint(NamedTuple):
    """Where a service or a deployment listens, and how to be let in."""

    addresses: tuple[Address, ...]
    token: str | None = None
    tls: TlsSettings | None = None
    token_file: str = ""
    server_name: str | None = None
    cluster: str = ""
    """The name of a Belfast deployment; empty: this is a service."""

    @property
    def plain_scheme(self) -> str:
        return BELFAST_SCHEME if self.cluster else SCHEME

    @property
    def tls_scheme(self) -> str:
        return BELFAST_TLS_SCHEME if self.cluster else TLS_SCHEME

    @property
    def scheme(self) -> str:
        return self.plain_scheme if self.tls is None else self.tls_scheme

    def __str__(self) -> str:
        """Without the token: this is shown and logged."""
        given = {name: getattr(self.tls, name, "") for name in _FILES}
        given |= {"server_name": self.server_name, "token_file": self.token_file}
        query = urlencode({name: each for name, each in given.items() if each}, quote_via=quote)
        hosts = ",".join(map(str, self.addresses))
        path = f"/{self.cluster}" if self.cluster else ""
        return f"{self.scheme}://{hosts}{path}" + (f"?{query}" if query else "")


def endpoint(url: str) -> Endpoint:
    """Of a service; the scheme may be left out."""
    what = f"the address {text('an address', url)!r}"
    parts = _split(url, SCHEME, what)
    if parts.scheme in (BELFAST_SCHEME, BELFAST_TLS_SCHEME):
        raise BadRequest(what, _A_DEPLOYMENT)
    if parts.scheme not in (SCHEME, TLS_SCHEME):
        raise BadRequest(what, f"its scheme must be {SCHEME} or, over TLS, {TLS_SCHEME}")
    if not _hosts(parts) or parts.path.strip("/"):
        raise BadRequest(what, f"it must read {SCHEME}://host:port, or host:port,host:port,...")
    return _endpoint(parts, what, parts.scheme == TLS_SCHEME)


def belfast_endpoint(url: str) -> Endpoint:
    """Of a Belfast deployment; the scheme may be left out."""
    return _log_endpoint(url, BELFAST_SCHEME, BELFAST_TLS_SCHEME)


def erwin_endpoint(url: str) -> Endpoint:
    """The sequencers of an Erwin log, for whoever looks after the log. Programs open it by its name
    in a service.
    """
    return _log_endpoint(url, ERWIN_SCHEME, ERWIN_TLS_SCHEME)


def _log_endpoint(url: str, scheme: str, tls_scheme: str) -> Endpoint:
    what = f"the address {text('an address', url)!r}"
    parts = _split(url, scheme, what)
    cluster = parts.path.strip("/")
    if parts.scheme in (SCHEME, TLS_SCHEME):
        raise BadRequest(what, _A_SERVICE)
    if parts.scheme not in (scheme, tls_scheme) or not cluster or "/" in cluster:
        raise BadRequest(what, f"it must read {scheme}://host:port,host:port,.../CLUSTER")
    for host in _hosts(parts).split(","):
        if not host.rpartition("]")[2].rpartition(":")[2].isdigit():
            raise BadRequest(what, f"{host!r} must say its port: a node may have any")
    return _endpoint(parts, what, parts.scheme == tls_scheme)._replace(cluster=cluster)


def _split(url: str, scheme: str, what: str) -> SplitResult:
    try:
        parts = urlsplit(url if "://" in url else f"{scheme}://{url}")
    except ValueError as error:
        raise BadRequest(what, str(error)) from None
    if parts.fragment:
        raise BadRequest(what, "nothing may follow a '#'")
    return parts


def _hosts(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[2]


def _endpoint(parts: SplitResult, what: str, over_tls: bool) -> Endpoint:
    try:
        query = dict(
            parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        )
    except ValueError as error:
        raise BadRequest(what, str(error)) from None
    known = (*_ANY, *_TLS) if over_tls else _ANY
    if not set(query).issubset(known):
        tls_scheme = BELFAST_TLS_SCHEME if parts.scheme.startswith(BELFAST_SCHEME) else TLS_SCHEME
        reason = f"what may stand after '?' is {', '.join(known)}"
        raise BadRequest(what, reason if over_tls else f"{reason}; the rest is {tls_scheme}://'s")
    if "\0" in query.get("token_file", ""):
        raise BadRequest(what, "no token file can have a name with a zero byte in it")
    if query.get("token_file") and parts.username:
        raise BadRequest(what, "give a token or a token_file, not both")
    return Endpoint(
        tuple(address(each, what) for each in _hosts(parts).split(",")),
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
    if not parts.hostname or parts.netloc != text or "@" in text or "," in text:
        raise BadRequest(what, f"{text!r} isn't host:port")
    try:
        parts.hostname.encode("idna")
    except UnicodeError:
        raise BadRequest(what, f"{parts.hostname!r} isn't the name of a host") from None
    return Address(parts.hostname, PORT if port is None else port)
