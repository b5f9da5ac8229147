"""What the controller of a front has decided, and whether the log has committed it yet."""

from typing import Any

from msgspec.structs import replace

from anabranch.core.bolt.front.counters import FrontControllerCounters
from anabranch.core.bolt.protocol.fronts import FrontConfiguration
from anabranch.core.limits import Limits
from anabranch.core.sequencing.protocol.letters import Present
from anabranch.core.types import Milliseconds

LOST_VIEWS_MAX = 100
"""The configuration names the last ones."""


class FrontPlan:
    """Of one term. While a configuration is on its way to the log nothing else is decided."""

    def __init__(
        self, configuration: FrontConfiguration, limits: Limits, counters: FrontControllerCounters
    ) -> None:
        assert configuration.term > 0, "the log gives terms"
        self.limits = limits
        self.counters = counters
        self.configuration = configuration
        """The last that the log has committed."""
        self.term = configuration.term
        self._asked: FrontConfiguration | None = None
        self._draft: FrontConfiguration | None = None

    @property
    def busy(self) -> bool:
        return self._asked is not None

    def fits(self, letter: Present) -> bool:
        """The service starts all replicas of a front as the log says: they aren't compared."""
        assert letter.node, "a node says who it is"
        return True

    def decide(self, **changes: Any) -> None:
        assert not self.busy, "one configuration at a time"
        self._draft = replace(self._draft or self.configuration, **changes)

    def note_lost_view(self, number: int, now_ms: Milliseconds) -> None:
        assert number > 0, "views are numbered from 1"
        lost = self.configuration.lost_views
        self.decide(lost_views=(*lost, (number, now_ms))[-LOST_VIEWS_MAX:])

    def take(self) -> FrontConfiguration | None:
        """What the log is to commit now."""
        if self._draft is None or self.busy:
            return None
        version = self.configuration.version + 1
        assert self._draft.term == self.term, "a term decides for itself"
        self._asked, self._draft = replace(self._draft, version=version), None
        return self._asked

    def adopt(self, configuration: FrontConfiguration) -> bool:
        """The log has it from somebody else. False if it is an old one, or of another term."""
        assert not self.busy, "what was asked may be in it"
        known = self.configuration
        if configuration.term != self.term or configuration.version <= known.version:
            return False
        self.configuration = configuration
        if self._draft is not None:
            self._draft = replace(self._draft, ending=configuration.ending)
        return True

    def journaled(self, configuration: FrontConfiguration) -> None:
        assert configuration == self._asked, "the log has committed what was asked"
        self.configuration, self._asked = configuration, None
