"""Replies that everybody gets until something has changed, encoded once for all of them.

A machine answers with the very same object for as long as it would say the same. Directories and
statuses grow with the shards of a log, and a client can ask for many in one packet: to encode each
anew would cost a hundred times what asking costs.
"""

from collections.abc import Mapping
from typing import Any

from anabranch.core.machine import Buffer
from anabranch.core.wire.client_protocol import ClientProtocol, ReplySize
from anabranch.core.wire.codec import Codec
from anabranch.core.wire.frames import CONNECTION, for_request


class RepeatedReplies:
    """Of one machine."""

    def __init__(self, protocol: ClientProtocol) -> None:
        self._repeated: Mapping[type, type] = protocol.repeated
        self._last = {kind: _LastReply(protocol.codec) for kind in protocol.repeated.values()}

    def __contains__(self, kind: type) -> bool:
        return kind in self._last

    def encode(self, request: int, message: Any) -> list[Buffer]:
        return for_request(self._last[type(message)].frame_of(message), request)

    def expected(self, question: Any, least: ReplySize) -> ReplySize:
        """What the reply to this question counts as."""
        kind = self._repeated.get(question.__class__)
        if kind is None or self._last[kind].size <= least.shared:
            return least
        size = self._last[kind].size
        return ReplySize(max(size, least.own), size)


class _LastReply:
    __slots__ = ("_codec", "_frame", "_message")

    def __init__(self, codec: Codec[Any, Any]) -> None:
        self._codec = codec
        self._message: Any = None
        self._frame: Buffer = b""

    @property
    def size(self) -> int:
        return len(self._frame)

    def frame_of(self, message: Any) -> Buffer:
        if message is not self._message:
            self._frame = b"".join(self._codec.encode_reply(CONNECTION, message))
            self._message = message
        return self._frame
