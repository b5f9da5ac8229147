"""One shard's stream, as a subscriber asks for it."""

from anabranch.client.belfast.effects import Transmit
from anabranch.client.belfast.line import Commons
from anabranch.client.belfast.settings import Settings
from anabranch.client.belfast.stream import Stream
from anabranch.core.belfast.protocol.messages import BELFAST_VERSION, Subscribe, ToClient, Welcome
from anabranch.core.errors import AnabranchError


class Owner:
    """A subscriber that wants shard a of node n from the beginning."""

    def node_for(self, shard: str) -> str:
        return "n"

    def start_of(self, shard: str) -> int:
        return 0

    def told(self, stream: Stream, message: ToClient) -> None:
        raise AssertionError(message)

    def refused(self, stream: Stream, error: AnabranchError) -> None:
        raise error


def test_a_stream_that_is_full_is_asked_for_again_or_nothing_would_ever_be_confirmed() -> None:
    commons = Commons("c", Settings(window_bytes=100), lambda _: 0)
    stream = Stream(commons, Owner(), "a", None)
    stream.open()
    commons.line("n").connected(Welcome(BELFAST_VERSION, "c", "n", "", 1, 1))
    stream.held_bytes = 120
    commons.effects.clear()
    stream.stop()
    stream.open()
    asked = [each.message for each in commons.effects if isinstance(each, Transmit)]
    assert Subscribe("a", 0, None, 1) in asked
