"""Bolt's part of a conversation: its frames, its greeting, and its sign of life."""

from anabranch.client.session.dialect import Dialect, Greeting
from anabranch.client.session.settings import Settings
from anabranch.core.bolt.protocol.codec import CODEC
from anabranch.core.bolt.protocol.messages import (
    PROTOCOL_VERSION,
    ClientMessage,
    Hello,
    Ping,
    ServerMessage,
    Welcome,
)
from anabranch.core.wire.session import Cancel


def _hello(settings: Settings, token: str | None, _: str) -> ClientMessage:
    return Hello(PROTOCOL_VERSION, settings.client, token, settings.traceparent)


def _greeting(message: ServerMessage) -> Greeting | None:
    if not isinstance(message, Welcome):
        return None
    return Greeting(
        message.cluster,
        message.record_bytes_max,
        message.batch_bytes_max,
        message.batch_records_max,
        message.engines,
    )


DIALECT: Dialect[ClientMessage, ServerMessage] = Dialect(
    hello=_hello,
    probe=Ping(),
    cancel=Cancel,
    greeting=_greeting,
    codec=CODEC,
)
