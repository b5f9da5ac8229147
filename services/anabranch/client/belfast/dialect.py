"""Belfast's part of a conversation: its frames, its greeting, and its sign of life."""

from anabranch.client.session.dialect import Dialect, Greeting
from anabranch.client.session.endpoint import WITHIN
from anabranch.client.session.settings import Settings
from anabranch.core.belfast.protocol.codec import CODEC
from anabranch.core.belfast.protocol.messages import (
    BELFAST_VERSION,
    Hello,
    Locate,
    ToClient,
    ToServer,
    Welcome,
)
from anabranch.core.limits import Limits
from anabranch.core.wire.session import Cancel


def _greeting(message: ToClient) -> Greeting | None:
    if not isinstance(message, Welcome):
        return None
    return Greeting(
        message.cluster,
        Limits().record_bytes_max,
        message.batch_bytes_max,
        message.batch_records_max,
    )


def dialect(cluster: str) -> Dialect[ToServer, ToClient]:
    """The one spoken with the deployment of this name."""

    def hello(settings: Settings, token: str | None, address: str) -> ToServer:
        node = address if address.startswith(WITHIN) else ""
        return Hello(BELFAST_VERSION, cluster, settings.client, token, node)

    return Dialect(
        hello=hello,
        probe=Locate(),
        cancel=Cancel,
        greeting=_greeting,
        codec=CODEC,
    )
