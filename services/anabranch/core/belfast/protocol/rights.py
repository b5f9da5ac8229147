"""Which rights each request of Belfast needs: all are about the one log that a deployment is."""

from collections.abc import Mapping
from typing import Final

from anabranch.core.belfast.protocol.messages import (
    Append,
    Hello,
    Inspect,
    Join,
    Leave,
    Locate,
    Subscribe,
    Trim,
)
from anabranch.core.rights.claims import SEEING, Subject, Verb
from anabranch.core.rights.one_log import OneLogRights
from anabranch.core.wire.session import Cancel, Credit

_VERBS: Final[Mapping[type, tuple[Verb, ...]]] = {
    Hello: (),
    Credit: (),
    Cancel: (),
    Locate: (),
    Append: (Verb.APPEND,),
    Subscribe: (Verb.READ,),
    Trim: (Verb.TRIM,),
    Inspect: SEEING,
    Leave: (Verb.UPDATE,),
    Join: (Verb.UPDATE,),
}
"""Any one of the verbs is enough; no verb: everyone who is let in may do it. `Locate` needs none
because every client finds its nodes by it before it asks for anything else.
"""


class BelfastRights(OneLogRights):
    """`log`: the resource whose rights clients need."""

    def __init__(self, log: Subject) -> None:
        super().__init__(log, _VERBS)
