"""Who we are towards the API server, and where it is: a pod's service account, or a kubeconfig."""

import base64
import os
import ssl
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import yaml
from aiohttp.connector import Connection

from anabranch.core.errors import BadRequest

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
AGENT = "anabranch-operator"


Gate = Callable[[], Exception | None]
"""Why the request mustn't be sent, if it mustn't."""


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """How the API server is reached. Tokens are in no `repr`."""

    server: str
    namespace: str
    """Ours."""
    authority: str | None = None
    """PEM of the authority to trust; None: those of this machine."""
    token_file: str = ""
    """It is rotated while we run, so it is looked at before each request."""
    identity: tuple[str, str] | None = None
    """PEM of a client's certificate and its key."""
    fixed_token: str = ""

    def __repr__(self) -> str:
        return f"Access({self.server})"

    def context(self) -> ssl.SSLContext | None:
        if not self.server.startswith("https:"):
            return None
        context = ssl.create_default_context(cadata=self.authority)
        if self.identity is not None:
            with tempfile.NamedTemporaryFile() as both:  # the library takes files only
                both.write("\n".join(self.identity).encode())
                both.flush()
                context.load_cert_chain(both.name)
        return context


class Token:
    """The service account's, as it is now."""

    def __init__(self, access: Access) -> None:
        self._file = access.token_file
        self._token = access.fixed_token
        self._stamp = (0, 0)

    def header(self) -> dict[str, str]:
        if self._file:
            stat = os.stat(self._file)
            stamp = (stat.st_mtime_ns, stat.st_ino)
            if stamp != self._stamp:
                self._token = Path(self._file).read_text(encoding="ascii").strip()
                self._stamp = stamp
        return {"Authorization": f"Bearer {self._token}"} if self._token else {}


class Gated(aiohttp.TCPConnector):
    """Asks, when a request has its connection and nothing of it was sent, whether it still may."""

    def __init__(self, context: ssl.SSLContext | None, connections_max: int, gate: Gate) -> None:
        super().__init__(  # pyright: ignore[reportUnknownMemberType]
            limit=connections_max, ssl=context or False
        )
        self._gate = gate

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Any],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - it is aiohttp's own
    ) -> Connection:
        connection = await super().connect(req, traces, timeout)
        refusal = self._gate()
        if refusal is not None:
            connection.release()
            raise refusal
        return connection


def session(
    access: Access, *, connections_max: int = 0, gate: Gate = lambda: None
) -> aiohttp.ClientSession:
    """For kopf's watches and for our own calls, each its own: kopf closes what it was given.

    What the gate tells is raised by the request.
    """
    token = Token(access)

    async def known(
        request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        request.headers.update(token.header())
        return await handler(request)

    return aiohttp.ClientSession(
        connector=Gated(access.context(), connections_max, gate),
        headers={"User-Agent": AGENT},
        middlewares=(known,),
    )


def find(environment: Mapping[str, str], kubeconfig: str = "") -> Access:
    """A kubeconfig that is named comes first, then the pod's account, then the usual places."""
    if kubeconfig:
        return from_kubeconfig(kubeconfig)
    host, port = (
        environment.get(f"KUBERNETES_SERVICE_{name}", "") for name in ("HOST", "PORT_HTTPS")
    )
    if host:
        return from_account(ACCOUNT, host, port or environment.get("KUBERNETES_SERVICE_PORT", ""))
    return from_kubeconfig(environment.get("KUBECONFIG") or str(Path.home() / ".kube" / "config"))


def from_account(account: Path, host: str, port: str) -> Access:
    shown = f"[{host}]" if ":" in host else host
    try:
        return Access(
            server=f"https://{shown}:{port or 443}",
            namespace=(account / "namespace").read_text(encoding="utf-8").strip(),
            authority=(account / "ca.crt").read_text(encoding="ascii"),
            token_file=str(account / "token"),
        )
    except OSError as error:
        reason = "mount a service account's token, ca.crt and namespace there"
        raise BadRequest(f"the service account at {account}", f"{error}: {reason}") from None


def from_kubeconfig(path: str) -> Access:
    """Its current context. Plugins that fetch tokens aren't run."""
    try:
        config: dict[str, Any] = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        context = _named(config["contexts"], config["current-context"])["context"]
        cluster = _named(config["clusters"], context["cluster"])["cluster"]
        user = _named(config["users"], context["user"])["user"]
    except (OSError, yaml.YAMLError, KeyError, TypeError, StopIteration) as error:
        raise BadRequest(f"the kubeconfig {path}", f"it can't be used: {error!r}") from None
    cert, key = (_pem(user, name, path) for name in ("client-certificate", "client-key"))
    return Access(
        server=cluster["server"].rstrip("/"),
        namespace=context.get("namespace", "default"),
        authority=_pem(cluster, "certificate-authority", path),
        token_file=user.get("tokenFile", ""),
        fixed_token=user.get("token", ""),
        identity=(cert, key) if cert and key else None,
    )


def _named(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(each for each in entries if each["name"] == name)


def _pem(section: Mapping[str, str], name: str, path: str) -> str | None:
    """Given in place, or as a file beside the kubeconfig."""
    if encoded := section.get(f"{name}-data"):
        return base64.b64decode(encoded).decode("ascii")
    if file := section.get(name):
        return (Path(path).parent / file).read_text(encoding="ascii")
    return None
