"""One shard's part of a subscription, as Belfast's nodes are asked for it."""

from anabranch.client.belfast.directory import NodeLine, Whereabouts
from anabranch.client.session import stream
from anabranch.client.session.commons import Commons
from anabranch.core.belfast.protocol.messages import (
    Elsewhere,
    Subscribe,
    ToClient,
    ToServer,
    Where,
)
from anabranch.core.types import Position
from anabranch.core.wire.session import Credit

BelfastCommons = Commons[ToServer, ToClient, Whereabouts]
Owner = stream.Owner[ToClient]
AnyStream = stream.Stream[ToServer, ToClient]


class Stream(stream.Stream[ToServer, ToClient]):
    """Of one shard, or of whoever serves it."""

    def __init__(
        self, commons: BelfastCommons, owner: Owner, shard: str, where: Where | None
    ) -> None:
        super().__init__(commons, owner, shard)
        self._router, self._where = commons.router, where

    def _line_to(self, node: str) -> NodeLine:
        return self._router.line(node)

    def _question(self, start: Position, credit: int) -> Subscribe:
        return Subscribe(self.shard, start, self._where, credit)

    def _credit(self, request: int, size: int) -> Credit:
        return Credit(request, size)

    def _moved(self, message: ToClient) -> bool:
        return isinstance(message, Elsewhere)
