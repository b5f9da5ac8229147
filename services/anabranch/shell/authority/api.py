"""Calls to a Kubernetes API server that are few and small: HTTPS by the standard library."""

import asyncio
import http.client
import ssl
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

from anabranch.core.errors import Unavailable
from anabranch.core.limits import MIB
from anabranch.core.types import Milliseconds
from anabranch.shell.net.tls import TlsSettings, trusting

WHAT = "the Kubernetes API server"
CALLS_MAX = 4
"""At the same time; more wait."""

_ANSWER_BYTES_MAX = MIB
_PAUSE_S = 1.0
"""After a call without an answer, or with one of 5xx, the next ones fail at once, for so long. An
answer of 4xx is about that one call: a stranger could provoke it, and must not shut others out.
"""
_HEADERS = {"Content-Type": "application/json", "Accept": "application/json"}


class ApiServer:
    """`folder` has this process's own token and the authority of the server's certificate; both
    are replaced while it runs.
    """

    def __init__(self, server: str, folder: Path, deadline_ms: Milliseconds) -> None:
        parts = urlsplit(server)
        self._host = parts.hostname or ""
        self._port = parts.port or http.client.HTTPS_PORT
        self._token = folder / "token"
        self._tls = trusting(TlsSettings(ca=str(folder / "ca.crt")))
        self._deadline_s = deadline_ms / 1_000
        self._threads = ThreadPoolExecutor(CALLS_MAX, "api-server")
        self._idle: deque[http.client.HTTPSConnection] = deque()
        self._closed = False
        self._away = ""
        self._away_until = 0.0

    async def post(self, path: str, body: bytes, what: str) -> bytes:
        """The answer to a request that may be made twice; Unavailable if there is none. `what`: for
        people, the kind that is posted.
        """
        loop = asyncio.get_running_loop()
        if loop.time() < self._away_until:
            raise Unavailable(WHAT, self._away)
        pauses = True
        try:
            async with asyncio.timeout(self._deadline_s):
                return await loop.run_in_executor(self._threads, self._post, path, body)
        except TimeoutError:
            reason = f"it doesn't answer a {what} within {self._deadline_s:g} s"
        except _Unanswered as failed:
            reason, pauses = str(failed), failed.pauses
        if pauses:
            self._away, self._away_until = reason, loop.time() + _PAUSE_S
        raise Unavailable(WHAT, reason)

    def close(self) -> None:
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._drop_idle()

    def _drop_idle(self) -> None:
        while True:
            try:
                self._idle.pop().close()
            except IndexError:
                return

    def _post(self, path: str, body: bytes) -> bytes:
        """A connection that was idle may have been closed meanwhile, which tells nothing."""
        try:
            headers = {**_HEADERS, "Authorization": f"Bearer {self._token.read_text().strip()}"}
            while True:
                try:
                    line, fresh = self._idle.pop(), False
                except IndexError:
                    line, fresh = self._dial(), True
                try:
                    return self._ask(line, path, body, headers)
                except (OSError, http.client.HTTPException):
                    line.close()
                    if fresh:
                        raise
        except TimeoutError:
            raise
        except ssl.SSLCertVerificationError as wrong:
            raise _Unanswered(f"its certificate isn't trusted: {wrong.verify_message}") from wrong
        except (OSError, http.client.HTTPException) as failed:
            raise _Unanswered(str(failed) or type(failed).__name__) from failed

    def _dial(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            self._host, self._port, timeout=self._deadline_s, context=self._tls.current()
        )

    def _ask(
        self,
        line: http.client.HTTPSConnection,
        path: str,
        body: bytes,
        headers: dict[str, str],
    ) -> bytes:
        line.request("POST", path, body, headers)
        answer = line.getresponse()
        content = answer.read(_ANSWER_BYTES_MAX)
        if answer.isclosed() and not answer.will_close:
            self._idle.append(line)
        else:
            line.close()
        if self._closed:  # meanwhile, and by another thread: nobody else closes what came after
            self._drop_idle()
        match answer.status:
            case http.client.OK | http.client.CREATED:
                return content
            case http.client.UNAUTHORIZED:
                reason = f"it doesn't take this process's own token, {self._token}"
                raise _Unanswered(reason, pauses=False)
            case http.client.FORBIDDEN:
                raise _Unanswered(
                    f"this process may not POST {path}: bind its service account to the "
                    "ClusterRole system:auth-delegator",
                    pauses=False,
                )
            case status:
                reason = f"it answers {status} {answer.reason}"
                raise _Unanswered(reason, pauses=status >= http.client.INTERNAL_SERVER_ERROR)


class _Unanswered(Exception):
    """Raised in a thread; the loop turns it into an error of the house."""

    def __init__(self, reason: str, *, pauses: bool = True) -> None:
        super().__init__(reason)
        self.pauses = pauses
