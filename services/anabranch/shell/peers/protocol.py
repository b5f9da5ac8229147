"""The part that a process takes in a mesh: the values in which engines and their roles differ."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from anabranch.core.errors import AccessDenied, AnabranchError, VersionMismatch, WrongCluster
from anabranch.core.wire.frames import FrameReader
from anabranch.core.wire.peers import Greeting
from anabranch.shell.authority.tokens import Tokens

Reader = Callable[[int], FrameReader[Any]]
"""Makes the reader of one connection, whose frames are at most so many bytes long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerProtocol:
    version: int
    """Of the greeting; both sides must speak the same."""
    own_noun: str
    """What a refusal calls this process."""
    dialed_noun: str
    """What the processes that this one dials are called in its log."""
    dialer_noun: str
    """What the processes that dial this one are called in its log."""
    from_dialed: Reader
    """Reads everything that a process says which this one has dialed, its greeting included."""
    from_dialers: Reader
    """Reads what a process says that has dialed this one, once it has greeted."""
    answers: bool
    """Whether letters to a process go back over the connection that it has dialed. Otherwise each
    side dials the other, and writes only where it has dialed."""
    name_objection: Callable[[str], str | None]
    """Why no process that dials this one can have this name, if so."""
    certificate_name: Callable[[str], str | None]
    """The name for which the certificate of a process must be issued, given the name in its
    greeting. None if any certificate of the authority will do."""
    certificate_setting: str
    """The setting that asks for this name."""
    moves: bool
    """Whether an address may come to belong to another process, so that the process found there
    must greet by it. Where it doesn't, processes have names beside their addresses."""

    def objection(
        self, ours: Greeting, tokens: Tokens, theirs: Greeting, shows: Callable[[str], bool] | None
    ) -> AnabranchError | None:
        """Why the process that greets so isn't taken for one of us.

        `shows` says whether its certificate was issued for a name; None if none is asked for.
        """
        here = f"{self.own_noun} {ours.node}"
        found = _objection(here, ours, tokens, theirs)
        if found is not None:
            return found
        who = f"a {self.dialer_noun} named {theirs.node!r}"
        own = "that is this node's own name" if self.moves and theirs.node == ours.node else None
        reason = own or self.name_objection(theirs.node)
        if reason is not None:
            return AccessDenied(here, who, reason)
        name = self.certificate_name(theirs.node)
        if shows is not None and name is not None and not shows(name):
            setting = self.certificate_setting
            reason = f"it shows no certificate that was issued for {name} ({setting})"
            return AccessDenied(here, who, reason)
        return None


def _objection(
    here: str, ours: Greeting, tokens: Tokens, theirs: Greeting
) -> AnabranchError | None:
    """With a token, only processes that show it are of this cluster."""
    if theirs.version != ours.version:
        return VersionMismatch(theirs.version, ours.version)
    if theirs.cluster != ours.cluster:
        return WrongCluster(here, ours.cluster, theirs.cluster)
    if ours.incarnation != theirs.incarnation:
        known, shown = ours.incarnation, theirs.incarnation
        cluster = f"{theirs.cluster} ({{}})"
        return WrongCluster(here, cluster.format(known), f"{cluster.format(shown)} of its bucket")
    if not tokens.accepts(theirs.token):
        reason = "it doesn't show the token that peers ask of each other (peer_token)"
        return AccessDenied(here, theirs.node, reason)
    return None
