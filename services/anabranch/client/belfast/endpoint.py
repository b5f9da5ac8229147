"""Where a deployment listens: `belfast://[token@]host:port[,host:port...]/CLUSTER`.

Any of its sequencers and shards: they tell who the others are. What may follow, and `belfasts://`
for TLS, is as in `anabranch://` (see anabranch.client.session.endpoint).
"""

from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit

from anabranch.client.session.arguments import text
from anabranch.client.session.endpoint import SCHEME, TLS_SCHEME, Endpoint
from anabranch.client.session.endpoint import endpoint as of_service
from anabranch.core.errors import BadRequest
from anabranch.shell.net.tls import TlsSettings

BELFAST_SCHEME = "belfast"
BELFAST_TLS_SCHEME = "belfasts"

_SCHEMES = {BELFAST_SCHEME: SCHEME, BELFAST_TLS_SCHEME: TLS_SCHEME}


class BelfastEndpoint(NamedTuple):
    """The deployment's name, and how to reach it."""

    cluster: str
    at: Endpoint

    @property
    def nodes(self) -> list[str]:
        return [str(address) for address in self.at.addresses]

    @property
    def token(self) -> str | None:
        return self.at.token

    @property
    def tls(self) -> TlsSettings | None:
        return self.at.tls

    def __str__(self) -> str:
        """Without the token: this is shown and logged."""
        scheme = BELFAST_SCHEME if self.tls is None else BELFAST_TLS_SCHEME
        return f"{scheme}://{','.join(self.nodes)}/{self.cluster}"


def endpoint(url: str) -> BelfastEndpoint:
    """The scheme may be left out."""
    what = f"the address {text('an address', url)!r}"
    full = url if "://" in url else f"{BELFAST_SCHEME}://{url}"
    try:
        parts = urlsplit(full)
    except ValueError as error:
        raise BadRequest(what, str(error)) from None
    cluster = parts.path.strip("/")
    if parts.scheme not in _SCHEMES or not cluster or "/" in cluster:
        raise BadRequest(what, "it must read belfast://host:port,host:port,.../CLUSTER")
    for host in parts.netloc.rpartition("@")[2].split(","):
        if not host.rpartition("]")[2].rpartition(":")[2].isdigit():
            raise BadRequest(what, f"{host!r} must say its port: a node may have any")
    service = urlunsplit((_SCHEMES[parts.scheme], parts.netloc, "", parts.query, parts.fragment))
    return BelfastEndpoint(cluster, of_service(service, what))
