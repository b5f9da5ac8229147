"""One shard's stream, as a subscriber asks for it."""

from anabranch.client.belfast.session import Session
from anabranch.client.belfast.stream import AnyStream, BelfastCommons, Stream
from anabranch.client.session.effects import Connected, Heard, Transmit
from anabranch.client.session.settings import Settings
from anabranch.core.belfast.protocol.messages import BELFAST_VERSION, Subscribe, ToClient, Welcome
from anabranch.core.errors import AnabranchError


class Owner:
    """A subscriber that wants shard a of node n from the beginning."""

    def node_for(self, shard: str) -> str:
        return "n"

    def start_of(self, shard: str) -> int:
        return 0

    def told(self, stream: AnyStream, message: ToClient) -> None:
        raise AssertionError(message)

    def refused(self, stream: AnyStream, error: AnabranchError) -> None:
        raise error


class Bare(Session):
    """A session whose parts a test makes by itself."""

    @property
    def commons(self) -> BelfastCommons:
        return self._commons


def test_a_stream_that_is_full_is_asked_for_again_or_nothing_would_ever_be_confirmed() -> None:
    session = Bare("c", Settings(window_bytes=100), lambda _: 0, ["n"])
    session.start(0)
    session.step(0, Connected())
    session.step(0, Heard([(0, Welcome(BELFAST_VERSION, "c", "n", "", 1, 1))]))
    stream = Stream(session.commons, Owner(), "a", None)
    stream.open()
    stream.held_bytes = 120
    session.commons.effects.clear()
    stream.stop()
    stream.open()
    asked = [each.message for each in session.commons.effects if isinstance(each, Transmit)]
    assert Subscribe("a", 0, None, 1) in asked
