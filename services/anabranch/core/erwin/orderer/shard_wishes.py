"""A person's wishes to open or close shards, until the controllers have decided them."""

from anabranch.core.alarms import Alarms
from anabranch.core.errors import AnabranchError, LastShard, Overloaded, UnknownShard
from anabranch.core.errors.refused import Refused
from anabranch.core.erwin.protocol.letters import Configuration, OpenShard
from anabranch.core.machine import Effect, Reply, Send, Token
from anabranch.core.sequencing.protocol.messages import Done, SetShardOpen
from anabranch.core.types import Milliseconds

WISHES_MAX = 100
"""Far above what persons ask for at a time."""


class ShardWishes:
    """Letters may be lost, and a controller that decides may yet have to be elected: each wish is
    repeated to all controllers until a configuration says so, or its client has gone.
    """

    def __init__(
        self,
        controllers: tuple[str, ...],
        effects: list[Effect],
        alarms: Alarms,
        retry_ms: Milliseconds,
    ) -> None:
        self._controllers = controllers
        self._effects = effects
        self._alarms = alarms
        self._retry_ms = retry_ms
        self._waiting: dict[Token, OpenShard] = {}
        self._repeating = False

    def ask(
        self, token: Token, message: SetShardOpen, configuration: Configuration | None
    ) -> AnabranchError | None:
        """Answered later, or at once if it is so; says what stands in the way."""
        assert token not in self._waiting
        is_open = _is_open(message.shard, configuration)
        if is_open is None:
            return UnknownShard(message.shard)
        if not message.open and _is_last(message.shard, configuration):
            return LastShard(message.shard)
        if len(self._waiting) >= WISHES_MAX:
            return Overloaded("shards to open or close", WISHES_MAX, "wishes_max")
        wish = self._waiting[token] = OpenShard(message.shard, message.open)
        if is_open != wish.open:
            self._send(wish)
        self.configured(configuration)
        return None

    def configured(self, configuration: Configuration | None) -> None:
        """Answer what the configuration fulfils, or what it forbids: of two wishes at once that
        close the last two shards, controllers grant one.
        """
        for token, wish in list(self._waiting.items()):
            if _is_open(wish.shard, configuration) == wish.open:
                self._answer(token, Done())
            elif not wish.open and _is_last(wish.shard, configuration):
                self._answer(token, Refused.of(LastShard(wish.shard)))

    def gone(self, token: Token) -> None:
        self._waiting.pop(token, None)

    def _answer(self, token: Token, message: Done | Refused) -> None:
        assert token in self._waiting, "a wish is answered once"
        del self._waiting[token]
        self._effects.append(Reply(token, message))

    def _send(self, wish: OpenShard) -> None:
        for node in self._controllers:
            self._effects.append(Send(node, wish))
        if not self._repeating:
            self._repeating = True
            self._alarms.after(self._retry_ms, self._repeat)

    def _repeat(self) -> None:
        self._repeating = False
        for wish in self._waiting.values():
            self._send(wish)


def _is_last(shard: str, configuration: Configuration | None) -> bool:
    """The only one that takes records."""
    assert shard, "a shard has a name"
    setups = configuration.shards if configuration else ()
    return [setup.name for setup in setups if setup.open and not setup.removed] == [shard]


def _is_open(shard: str, configuration: Configuration | None) -> bool | None:
    """None for a shard that isn't known. A shard that was added again is the last of its name."""
    setups = configuration.shards if configuration else ()
    found = [setup for setup in setups if setup.name == shard]
    return found[-1].open and not found[-1].removed if found else None
