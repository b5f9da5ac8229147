"""An object store that is slow, refuses, does what it says it didn't, and loses nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from anabranch.core.errors import (
    AnabranchError,
    CorruptObject,
    ObjectExists,
    ObjectMissing,
    Unavailable,
)
from anabranch.core.machine import Buffer
from anabranch.core.records.objects import quarantined
from anabranch.core.types import MS, Nanoseconds
from anabranch_sim.world.events import World

OnResult = Callable[[AnabranchError | bytes | None], None]


@dataclass(slots=True)
class StoreFaults:
    """What may go wrong with a request, as probabilities; all zero is a good store."""

    delay: Nanoseconds = 2 * MS
    slow: float = 0.0
    """How many requests take up to a hundred times as long."""
    refuses: float = 0.0
    """503: nothing was done."""
    lies: float = 0.0
    """The answer is lost: it was done, and is reported as failed."""


class SimStore:
    """Create-only blobs. Whoever asks is told in its own time, or never, if it dies meanwhile."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.faults = StoreFaults()
        self.objects: dict[str, bytes] = {}
        self.deleted: dict[str, None] = {}
        """Names that are free again, though nobody may use them again."""
        self.quarantine: dict[str, Nanoseconds] = {}
        """Orphans by the names that they have there, and since when."""
        self.missed: list[str] = []
        """Objects that were asked for after they had been deleted, or before they were there."""

    def put(self, name: str, parts: Sequence[Buffer], told: OnResult) -> None:
        content = b"".join(parts)

        def done() -> AnabranchError | None:
            if name in self.objects:
                return ObjectExists(name)
            assert name not in self.deleted, f"{name} is used a second time"
            self.objects[name] = content
            return None

        self._serve(done, told)

    def put_signed(
        self,
        name: str,
        content: bytes,
        until: Nanoseconds,
        told: OnResult,
        created: Callable[[str], None],
    ) -> None:
        """By a URL, which is valid for some time. One that was sent in time may take effect later,
        also under a name that is free again; `created` is told of it then.
        """

        def done() -> AnabranchError | None:
            if name in self.objects:
                return ObjectExists(name)
            self.objects[name] = content
            created(name)
            return None

        if self.world.now > until:
            self.world.after(self._delay(), lambda: told(Unavailable("the store", "it lapsed")))
        else:
            self._serve(done, told)

    def get(self, name: str, start: int, length: int, told: OnResult) -> None:
        def done() -> AnabranchError | bytes:
            content = self.objects.get(name)
            if content is None:
                self.missed.append(name)
                return ObjectMissing(name)
            if len(content) < start + length:
                return CorruptObject(name, f"it ends at {len(content)}")
            return content[start : start + length]

        self._serve(done, told)

    def delete(self, names: Sequence[str], told: OnResult) -> None:
        def done() -> None:
            for name in names:
                if self.objects.pop(name, None) is not None:
                    self.deleted[name] = None

        self._serve(done, told)

    def quarantine_orphans(self, names: Sequence[str], told: OnResult) -> None:
        def done() -> None:
            for name in names:
                content = self.objects.pop(name, None)
                if content is not None:
                    self.deleted[name] = None
                    self.objects[quarantined(name)] = content
                    self.quarantine[quarantined(name)] = self.world.now

        self._serve(done, told)

    def return_objects(self, names: Sequence[str], told: OnResult) -> None:
        def done() -> None:
            for name in names:
                if self.quarantine.pop(quarantined(name), None) is not None:
                    self.objects[name] = self.objects.pop(quarantined(name))

        self._serve(done, told)

    def purge(self, names: Sequence[str], told: OnResult) -> None:
        def done() -> None:
            for name in map(quarantined, names):
                self.quarantine.pop(name, None)
                self.objects.pop(name, None)

        self._serve(done, told)

    def in_quarantine(self, told: Callable[[dict[str, Nanoseconds]], None]) -> None:
        self.world.after(self._delay(), lambda: told(dict(self.quarantine)))

    def names(self, told: Callable[[list[str]], None]) -> None:
        self.world.after(
            self._delay(), lambda: told(sorted(self.objects.keys() - self.quarantine.keys()))
        )

    def heal(self) -> None:
        self.faults = StoreFaults()

    def _serve(self, done: Callable[[], AnabranchError | bytes | None], told: OnResult) -> None:
        """It takes effect at some moment on the way, whatever is then said of it."""
        world, faults = self.world, self.faults
        delay = self._delay()
        if world.chance(faults.refuses):
            world.after(delay, lambda: told(Unavailable("the store", "SlowDown")))
            return
        lost = world.chance(faults.lies)

        def effect() -> None:
            outcome = done()
            answer = Unavailable("the store", "the answer was lost") if lost else outcome
            world.after(delay // 2, lambda: told(answer))

        world.after(delay // 2, effect)

    def _delay(self) -> Nanoseconds:
        delay = self.world.between(self.faults.delay // 4, self.faults.delay)
        if self.world.chance(self.faults.slow):
            delay *= self.world.between(2, 100)
        return delay
