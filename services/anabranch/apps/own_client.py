"""A client of the process's own port, for what its broker doesn't know of logs of other engines."""

from anabranch.apps.up import Embedded
from anabranch.client.aio import Service
from anabranch.client.bolt.link import Link
from anabranch.client.session.endpoint import Endpoint, address
from anabranch.client.session.settings import Settings

NAME = "http"
"""What the client calls itself."""
WINDOW_BYTES = 256 << 10
"""What a subscription holds that isn't taken yet, of each shard: many that aren't read leave room
for others of the same principal.
"""


class OwnClient:
    """Connects when it is first asked for."""

    def __init__(self, embedded: Embedded) -> None:
        self._embedded = embedded
        self._service: Service | None = None
        self._token: str | None = None

    def service(self) -> Service:
        """The client, with a token that is good now.

        When the tokens in the file have changed, there is another client; the one before is kept
        for those who still use it.
        """
        token = self._embedded.token.first
        if self._service is None or token != self._token:
            self._service, self._token = self._connected(token), token
        return self._service

    def _connected(self, token: str | None) -> Service:
        embedded = self._embedded
        settings = Settings(
            client=NAME,
            token=token,
            pending_bytes_max=embedded.limits.queue_bytes_max,
            subscription_bytes=WINDOW_BYTES,
            window_bytes=WINDOW_BYTES,
        )
        link = Link(Endpoint((address(embedded.frames),)), settings)
        service = Service(link)
        link.start()
        embedded.behind.push_async_callback(service.close, wait=False)
        return service
