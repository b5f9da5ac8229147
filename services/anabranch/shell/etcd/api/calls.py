"""Calls to etcd over gRPC: endpoints that come and go, deadlines, tokens, errors of the house."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

import grpc
from google.protobuf.message import Message

from anabranch.core.errors import (
    AccessDenied,
    AnabranchError,
    BadRequest,
    DeadlineExceeded,
    StorageFull,
    Unavailable,
)
from anabranch.shell.etcd.api.etcd_pb2 import AuthenticateRequest, AuthenticateResponse
from anabranch.shell.etcd.api.settings import EtcdSettings
from anabranch.shell.net.reload import Renewed
from anabranch.shell.net.tls import TlsSettings, check_files

Asked = TypeVar("Asked", bound=Message)
Answered = TypeVar("Answered", bound=Message)

_OPTIONS = (
    # Of its own for each client, reconnecting at once: by default gRPC would wait up to 2 minutes.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    # Also how long one attempt to connect may take.
    ("grpc.min_reconnect_backoff_ms", 3_000),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # A pod that comes back has another address; by default its name is asked for each 30 s.
    ("grpc.dns_min_time_between_resolutions_ms", 1_000),
    # etcd drops whoever pings it more often than each 5 s.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 3_000),
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
)
_STALE_TOKEN = ("invalid auth token", "revision of auth store is old", "user name is empty")
_UNSENT = "failed to connect to all addresses"
"""Of the one member, says gRPC; in other words of a later version it would count as sent."""
_DENIED = ("authentication failed", "user name is empty", "permission")


@dataclass(frozen=True, slots=True)
class Method(Generic[Asked, Answered]):
    """One call of etcd's API; what isn't `repeatable` may have happened if it wasn't answered."""

    path: str
    answer: type[Answered]
    repeatable: bool = True


class Compacted(Exception):
    """What was asked of etcd lies before the revision it has been compacted to."""


class LeaseGone(Exception):
    """The lease has lapsed, or was revoked."""


_AUTHENTICATE: Method[AuthenticateRequest, AuthenticateResponse] = Method(
    "/etcdserverpb.Auth/Authenticate", AuthenticateResponse
)


class _Channel:
    """A connection by certain credentials, which mends by itself."""

    def __init__(self, address: str, credentials: grpc.ChannelCredentials | None) -> None:
        self.credentials = credentials
        self.inner = (
            grpc.secure_channel(address, credentials, _OPTIONS)
            if credentials
            else grpc.insecure_channel(address, _OPTIONS)
        )
        self.unary: dict[str, Any] = {}


class Endpoint:
    """One member. With other credentials than before there is another channel; what began on the
    one before, as a watch, goes on there.
    """

    def __init__(self, address: str, credentials: Renewed[grpc.ChannelCredentials | None]) -> None:
        self.address = address
        self._credentials = credentials
        self._channels = [_Channel(address, credentials.current())]
        self._lock = Lock()

    def unary(self, method: Method[Asked, Answered]) -> Any:
        channel = self._channel()
        call = channel.unary.get(method.path)
        if call is None:
            call = channel.inner.unary_unary(method.path, _serialize, method.answer.FromString)
            channel.unary[method.path] = call
        return call

    def stream(self, method: Method[Asked, Answered]) -> Any:
        inner = self._channel().inner
        return inner.stream_stream(method.path, _serialize, method.answer.FromString)

    def close(self) -> None:
        for channel in self._channels:
            channel.inner.close()

    def _channel(self) -> _Channel:
        credentials = self._credentials.current()
        with self._lock:
            if self._channels[-1].credentials is not credentials:
                self._channels.append(_Channel(self.address, credentials))
            return self._channels[-1]


class Calls:
    """Goes to one member until that fails, then to the next. Any thread may call."""

    def __init__(self, settings: EtcdSettings) -> None:
        if not settings.endpoints:
            raise BadRequest("etcd", "no endpoint is given: name at least one member's address")
        self._settings = settings
        self.where = "etcd " + ",".join(settings.endpoints)
        files = tuple(filter(None, (settings.ca, settings.cert, settings.key)))
        credentials = Renewed(files, partial(_credentials, settings), None)
        self.endpoints = [Endpoint(_bare(each), credentials) for each in settings.endpoints]
        self._current = 0
        self._token = ""
        self._lock = Lock()

    def call(
        self,
        method: Method[Asked, Answered],
        request: Asked,
        *,
        deadline_ms: int = 0,
        endpoint: Endpoint | None = None,
    ) -> Answered:
        """The answer; what wasn't sent, or may be sent twice, is tried at every member."""
        tries = len(self.endpoints) if endpoint is None else 1
        while True:
            tries -= 1
            try:
                return self._attempt(method, request, deadline_ms, endpoint or self.current)
            except (Unavailable, DeadlineExceeded) as error:
                if tries <= 0 or not (method.repeatable or _UNSENT in error.message):
                    raise

    def stream(
        self, method: Method[Asked, Answered], requests: Iterator[Asked], timeout_s: float | None
    ) -> tuple[Endpoint, Any]:
        """The member it went to, and gRPC's call: iterate it, cancel it; errors are its own."""
        self._authenticate(stale="")
        endpoint = self.current
        start = endpoint.stream(method)
        with _while_open(endpoint):
            return endpoint, start(requests, timeout=timeout_s, metadata=self._metadata())

    @property
    def current(self) -> Endpoint:
        return self.endpoints[self._current]

    def leave(self, endpoint: Endpoint) -> None:
        """It has failed: the next call goes to another member."""
        with self._lock:
            if self.current is endpoint:
                self._current = (self._current + 1) % len(self.endpoints)

    def error(
        self, what: str, deadline_ms: int, endpoint: Endpoint, failed: grpc.RpcError
    ) -> AnabranchError | Compacted | LeaseGone:
        """What gRPC says, in the words of the house; a member that isn't there is left, a
        token that isn't taken is forgotten.
        """
        assert isinstance(failed, grpc.Call)
        code, said = failed.code(), failed.details() or ""
        if "database space exceeded" in said:
            return StorageFull(self.where)
        if code == grpc.StatusCode.OUT_OF_RANGE and "compacted" in said:
            return Compacted(said)
        if code == grpc.StatusCode.NOT_FOUND and "lease" in said:
            return LeaseGone(said)
        if code == grpc.StatusCode.UNAUTHENTICATED or any(sign in said for sign in _DENIED):
            self._token = ""
            return AccessDenied(self.where, self._settings.user or "nobody", said)
        if code in {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION}:
            return BadRequest(f"{what} at {self.where}", said)
        if code != grpc.StatusCode.CANCELLED:
            self.leave(endpoint)
        if code == grpc.StatusCode.DEADLINE_EXCEEDED:
            return DeadlineExceeded(f"{what} at etcd {endpoint.address}", deadline_ms)
        return Unavailable(f"etcd {endpoint.address}", f"{what}: {said or code.name.lower()}")

    def close(self) -> None:
        for endpoint in self.endpoints:
            endpoint.close()

    def _attempt(
        self,
        method: Method[Asked, Answered],
        request: Asked,
        deadline_ms: int,
        endpoint: Endpoint,
    ) -> Answered:
        deadline_ms = deadline_ms or self._settings.deadline_ms
        token = self._authenticate(stale="")
        try:
            return self._send(method, request, deadline_ms, endpoint)
        except grpc.RpcError as failed:
            error = failed
        if token and _is_stale(error):
            self._authenticate(stale=token)
            try:
                return self._send(method, request, deadline_ms, endpoint)
            except grpc.RpcError as failed:
                error = failed
        raise self.error(method.path.rpartition("/")[2], deadline_ms, endpoint, error) from error

    def _send(
        self,
        method: Method[Asked, Answered],
        request: Asked,
        deadline_ms: int,
        endpoint: Endpoint,
    ) -> Answered:
        call = endpoint.unary(method)
        with _while_open(endpoint):
            answer: Answered = call(request, timeout=deadline_ms / 1_000, metadata=self._metadata())
        return answer

    def _metadata(self) -> tuple[tuple[str, str], ...] | None:
        return (("token", self._token),) if self._token else None

    def _authenticate(self, *, stale: str) -> str:
        """The token to call with; a new one if none is held but the stale one."""
        if not self._settings.user:
            return ""
        with self._lock:
            if self._token != stale:
                return self._token
            self._token = ""
        request = AuthenticateRequest(name=self._settings.user, password=self._settings.password)
        endpoint, deadline_ms = self.current, self._settings.deadline_ms
        try:
            token = self._send(_AUTHENTICATE, request, deadline_ms, endpoint).token
        except grpc.RpcError as failed:
            error = self.error("Authenticate", deadline_ms, endpoint, failed)
            raise error from failed
        with self._lock:
            self._token = token
        return token


@contextmanager
def _while_open(endpoint: Endpoint) -> Generator[None]:
    """Other threads may still call while the process closes what it has."""
    try:
        yield
    except ValueError as closed:
        raise Unavailable(f"etcd {endpoint.address}", str(closed)) from closed


def _is_stale(failed: grpc.RpcError) -> bool:
    assert isinstance(failed, grpc.Call)
    said = failed.details() or ""
    return any(sign in said for sign in _STALE_TOKEN)


def _serialize(request: Message) -> bytes:
    return request.SerializeToString()


def _bare(endpoint: str) -> str:
    return endpoint.removeprefix("http://").removeprefix("https://").rstrip("/")


def _credentials(settings: EtcdSettings) -> grpc.ChannelCredentials | None:
    secure = [each.startswith("https://") for each in settings.endpoints]
    if not (any(secure) or settings.ca or settings.cert):
        return None
    check_files(TlsSettings(ca=settings.ca, cert=settings.cert, key=settings.key))
    return grpc.ssl_channel_credentials(
        root_certificates=_content(settings.ca),
        private_key=_content(settings.key),
        certificate_chain=_content(settings.cert),
    )


def _content(file: str) -> bytes | None:
    if not file:
        return None
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise BadRequest(f"the file {file} for etcd's TLS", str(error)) from error
