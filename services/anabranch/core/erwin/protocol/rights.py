"""Which rights each request to a shard needs: all are about the one log that a deployment is."""

from collections.abc import Mapping
from typing import Final

from anabranch.core.erwin.protocol.messages import Data, Hello, Read, Subscribe
from anabranch.core.rights.claims import Subject, Verb
from anabranch.core.rights.one_log import OneLogRights
from anabranch.core.sequencing.protocol.messages import Locate
from anabranch.core.wire.session import Cancel, Credit

_VERBS: Final[Mapping[type, tuple[Verb, ...]]] = {
    Hello: (),
    Credit: (),
    Cancel: (),
    Locate: (),
    Data: (Verb.APPEND,),
    Read: (Verb.READ,),
    Subscribe: (Verb.READ,),
}
"""`Locate` needs no right because every client finds its nodes by it before it asks for anything
else.
"""


class ShardRights(OneLogRights):
    """`log`: the resource whose rights clients need."""

    def __init__(self, log: Subject) -> None:
        super().__init__(log, _VERBS)
