"""Rights of the requests of a protocol in which each is about the one log that a deployment is."""

from collections.abc import Hashable, Mapping

from anabranch.core.rights.claims import LOGS, Claim, Subject, Verb


def log_of(cluster: str, namespace: str) -> Subject:
    """The log whose rights clients of this cluster need, as a service in this namespace sees it:
    the operator calls a SequencerSet's cluster `NAMESPACE.NAME`.
    """
    return Subject(LOGS, cluster.removeprefix(f"{namespace}."), namespace)


class OneLogRights:
    """`log`: the resource whose rights clients need. Any one of a request's verbs is enough; if it
    has none, everyone who is let in may make it.
    """

    def __init__(self, log: Subject, verbs: Mapping[type, tuple[Verb, ...]]) -> None:
        assert verbs, "every request says what it needs"
        self._claims = {kind: (Claim(log, each),) if each else () for kind, each in verbs.items()}

    def needs(self, message: object) -> tuple[Claim, ...]:
        return self._claims[type(message)]

    def kept(self, message: object) -> Hashable:
        return type(message)
