"""Which rights each request to a sequencing replica needs: all are about the one log that it
sequences.
"""

from collections.abc import Mapping
from typing import Final

from anabranch.core.rights.claims import SEEING, Subject, Verb
from anabranch.core.rights.one_log import OneLogRights
from anabranch.core.sequencing.protocol.messages import (
    Append,
    AppendMeta,
    AskTail,
    FindPosition,
    Hello,
    Inspect,
    Locate,
    SetShardOpen,
    Survey,
    Trim,
)
from anabranch.core.wire.session import Cancel

_VERBS: Final[Mapping[type, tuple[Verb, ...]]] = {
    Hello: (),
    Cancel: (),
    Locate: (),
    Append: (Verb.APPEND,),
    AppendMeta: (Verb.APPEND,),
    FindPosition: (Verb.APPEND, Verb.READ),
    AskTail: (Verb.APPEND, Verb.READ),
    Inspect: SEEING,
    Survey: SEEING,
    Trim: (Verb.TRIM,),
    SetShardOpen: (Verb.UPDATE,),
}
"""`Locate` needs no right because every client finds its nodes by it before it asks for anything
else.
"""


class SequencingRights(OneLogRights):
    """`log`: the resource whose rights clients need."""

    def __init__(self, log: Subject) -> None:
        super().__init__(log, _VERBS)
