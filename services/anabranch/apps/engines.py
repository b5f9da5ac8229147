"""The engines whose logs a process embeds, and what can be made of their journals."""

from collections.abc import Mapping

from anabranch.apps.belfast.engine import BELFAST_JOURNALS, EmbeddedBelfast
from anabranch.apps.embedded.engine import EmbeddedEngine
from anabranch.apps.embedded.losses import JournalRules
from anabranch.apps.erwin.engine import ERWIN_JOURNALS, EmbeddedErwin
from anabranch.apps.lazy.engine import LAZY_JOURNALS, EmbeddedFront
from anabranch.core.belfast.ledger.rules import Rules
from anabranch.core.bolt.protocol.commands import FRONT

JOURNAL_RULES: Mapping[str, JournalRules] = {
    "belfast": BELFAST_JOURNALS,
    "erwin": ERWIN_JOURNALS,
    FRONT: LAZY_JOURNALS,
}
"""By engine, as the catalogue calls it."""


def embedded_engines(rules: Rules) -> tuple[EmbeddedEngine, ...]:
    """`rules`: those of Belfast's logs."""
    return (EmbeddedBelfast(rules), EmbeddedErwin(), EmbeddedFront())
