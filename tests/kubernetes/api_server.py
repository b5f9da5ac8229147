"""An API server as tests use it: asked by kubectl or over HTTP, given accounts, and overheard."""

import http.client
import json
import secrets
import ssl
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
from tests.kubernetes.audit import MARK, Request, read
from tests.kubernetes.binaries import program

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

ANSWER_S = 120.0
"""A machine that is busy with other things may take this long."""

_LOOK_S = 0.01
_APPLY = "application/apply-patch+yaml"


class Refused(Exception):
    """What the API server or kubectl said; `code` is the status of the answer, if one came."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


class Rule(msgspec.Struct, frozen=True):
    """One of a role's."""

    verbs: Sequence[str]
    groups: Sequence[str]
    resources: Sequence[str]
    names: Sequence[str] = ()

    def as_manifest(self) -> dict[str, object]:
        manifest = {"verbs": self.verbs, "apiGroups": self.groups, "resources": self.resources}
        return {**manifest, "resourceNames": self.names} if self.names else {**manifest}


class ApiServer:
    """Its folder holds all that one needs to reach it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kubeconfig = folder / "admin.conf"
        """The administrator's."""
        self.ca = folder / "ca.crt"
        self.audit_log = folder / "audit.log"

    @property
    def url(self) -> str:
        told = json.loads(self.kubeconfig.read_text(encoding="utf-8"))
        return told["clusters"][0]["cluster"]["server"]

    def ready(self) -> bool:
        """It says so itself, to anybody."""
        connection = self._connect(administrator=False)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def write_config(self, name: str, url: str, user: Mapping[str, str]) -> Path:
        path = self.folder / f"{name}.conf"
        cluster = {"server": url, "certificate-authority": str(self.ca)}
        told = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": name, "user": dict(user)}],
            "contexts": [{"name": name, "context": {"cluster": "test", "user": name}}],
            "current-context": name,
        }
        path.write_text(json.dumps(told), encoding="utf-8")
        return path

    def config_of(self, token: str) -> Path:
        """A kubeconfig for who bears the token."""
        return self.write_config(f"bearer-{_unique()}", self.url, {"token": token})

    def kubectl(self, *arguments: str, given: str = "", kubeconfig: Path | None = None) -> str:
        """What it printed; `given` is its standard input, for `-f -`."""
        done = subprocess.run(
            [program("kubectl"), f"--kubeconfig={kubeconfig or self.kubeconfig}", *arguments],
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=ANSWER_S,
            # No cache of discovery in somebody's home: CRDs come and go here.
            env={"HOME": str(self.folder), "KUBECACHEDIR": str(self.folder / "discovery")},
        )
        if done.returncode:
            raise Refused(done.stderr.strip())
        return done.stdout

    def client(self, token: str | None = None) -> "ApiClient":
        """The official one, as the administrator or as the bearer of the token."""
        from kubernetes.config import new_client_from_config

        config = self.kubeconfig if token is None else self.config_of(token)
        return new_client_from_config(str(config))

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        token: str | None = None,
        content: str = "application/json",
    ) -> Any:
        """One request, answered by JSON; whatever isn't a success is raised."""
        connection = self._connect(administrator=token is None)
        headers = {"Content-Type": content, "Accept": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        try:
            connection.request(method, path, json.dumps(body) if body else None, headers)
            answer = connection.getresponse()
            said = answer.read()
        finally:
            connection.close()
        if answer.status >= 300:
            raise Refused(_message(said), answer.status)
        return json.loads(said)

    def apply(self, path: str, manifest: object, manager: str, *, force: bool = False) -> Any:
        """Server-side, at the object's own path."""
        forced = "true" if force else "false"
        query = f"?fieldManager={manager}&force={forced}"
        return self.ask("PATCH", path + query, manifest, content=_APPLY)

    def namespace(self, prefix: str = "test", labels: Mapping[str, str] | None = None) -> str:
        """A new one, with the account that pods have unasked."""
        name = f"{prefix}-{_unique()}"
        metadata = {"name": name, "labels": dict(labels or {})}
        self.ask("POST", "/api/v1/namespaces", _object("Namespace", metadata))
        self._account(name, "default")
        return name

    def service_account(
        self,
        namespace: str,
        name: str,
        rules: Iterable[Rule] = (),
        everywhere: Iterable[Rule] = (),
        audiences: Sequence[str] = (),
    ) -> str:
        """A token of a new account, which may do that in its namespace, and in the cluster."""
        self._account(namespace, name)
        if given := [rule.as_manifest() for rule in rules]:
            self._grant(f"/namespaces/{namespace}", "Role", namespace, name, given)
        if given := [rule.as_manifest() for rule in everywhere]:
            self._grant("", "ClusterRole", namespace, name, given)
        return self.token(namespace, name, audiences)

    def token(
        self, namespace: str, name: str, audiences: Sequence[str] = (), seconds: int = 3_600
    ) -> str:
        spec: dict[str, object] = {"expirationSeconds": seconds}
        if audiences:
            spec["audiences"] = list(audiences)
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        return self.ask("POST", path, request)["status"]["token"]

    def mark(self) -> int:
        """A place in the account of requests: all that was answered by now is before it."""
        wanted = f"{MARK}{_unique()}"
        before = self.audit_log.stat().st_size
        self.ask("GET", wanted)
        pause = Event()
        for _ in range(int(ANSWER_S / _LOOK_S)):
            said = self._overheard(before)
            at = said.find(wanted.encode())
            end = said.find(b"\n", at)
            if at >= 0 and end >= 0:
                return before + end + 1
            pause.wait(_LOOK_S)
        raise Refused(f"the request {wanted} isn't in {self.audit_log}")

    def requests(self, since: int = 0, user: str | None = None) -> list[Request]:
        """What was asked since a mark, by one user or by all; marks aren't counted."""
        upto = self.mark()
        found = read(self._overheard(since)[: upto - since])
        return [each for each in found if user is None or each.user == user]

    def _overheard(self, since: int) -> bytes:
        with self.audit_log.open("rb") as account:
            account.seek(since)
            return account.read()

    def _connect(self, *, administrator: bool) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cafile=str(self.ca))
        if administrator:
            context.load_cert_chain(self.folder / "admin.crt", self.folder / "admin.key")
        where = urlsplit(self.url).netloc
        return http.client.HTTPSConnection(where, timeout=ANSWER_S, context=context)

    def _account(self, namespace: str, name: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}"
        self.apply(path, _object("ServiceAccount", {"name": name}), "tests")

    def _grant(
        self, where: str, kind: str, namespace: str, account: str, rules: list[dict[str, object]]
    ) -> None:
        group = "rbac.authorization.k8s.io"
        home = f"/apis/{group}/v1{where}"
        name = account if where else f"{namespace}-{account}"
        role = _object(kind, {"name": name}, f"{group}/v1") | {"rules": rules}
        subject = {"kind": "ServiceAccount", "namespace": namespace, "name": account}
        binding = _object(f"{kind}Binding", {"name": name}, f"{group}/v1") | {
            "roleRef": {"apiGroup": group, "kind": kind, "name": name},
            "subjects": [subject],
        }
        self.ask("POST", f"{home}/{kind.lower()}s", role)
        self.ask("POST", f"{home}/{kind.lower()}bindings", binding)


def _object(kind: str, metadata: Mapping[str, object], version: str = "v1") -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": dict(metadata)}


def _message(said: bytes) -> str:
    try:
        return str(json.loads(said)["message"])
    except (ValueError, KeyError):
        return said.decode(errors="replace")


def _unique() -> str:
    """Nobody else's, whichever worker asks."""
    return secrets.token_hex(5)
