"""Which rights each request of Belfast needs: all are about the one log that a deployment is."""

from collections.abc import Hashable, Mapping
from typing import Final

from anabranch.core.belfast.protocol.messages import (
    Append,
    Hello,
    Inspect,
    Join,
    Leave,
    Locate,
    Subscribe,
    ToServer,
    Trim,
)
from anabranch.core.rights.claims import LOGS, SEEING, Claim, Subject, Verb
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


def log_of(cluster: str, namespace: str) -> Subject:
    """The log whose rights clients of this cluster need, as a service in this namespace sees it:
    the operator calls a SequencerSet's cluster `NAMESPACE.NAME`.
    """
    return Subject(LOGS, cluster.removeprefix(f"{namespace}."), namespace)


class BelfastRights:
    """`log`: the resource whose rights clients need."""

    def __init__(self, log: Subject) -> None:
        self._claims = {
            kind: (Claim(log, verbs),) if verbs else () for kind, verbs in _VERBS.items()
        }

    def needs(self, message: ToServer) -> tuple[Claim, ...]:
        return self._claims[type(message)]

    def kept(self, message: ToServer) -> Hashable:
        return type(message)
