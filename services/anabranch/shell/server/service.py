"""One machine of one engine, as its clients reach it through a server."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from anabranch.core.budget import EVERYBODY
from anabranch.core.errors import AnabranchError
from anabranch.core.machine import Token
from anabranch.core.rights.claims import Rights
from anabranch.core.wire.client_protocol import ClientProtocol
from anabranch.ports import Authority
from anabranch.shell.runtime.driver import Caller, Host, Seat, seat_of
from anabranch.shell.server.append_limits import AppendLimits
from anabranch.shell.server.repeated_replies import RepeatedReplies
from anabranch.shell.telemetry.otlp import Context, parse_traceparent


@dataclass(frozen=True, slots=True)
class Absence:
    """Why a machine isn't served, for clients who would be let in."""

    authority: Authority
    error: AnabranchError


class Service:
    def __init__(
        self,
        protocol: ClientProtocol,
        host: Host,
        node: str,
        *,
        welcome: Any,
        authority: Authority,
        rights: Rights,
        name: str = "",
        completions: Mapping[type, Callable[[Any], Any]] | None = None,
    ) -> None:
        """`name`: by which a client's hello asks for this machine, where a server has several of
        its engine. `completions`: by type, what turns a reply of the machine into what the client
        gets, with what only this process knows.
        """
        self.protocol = protocol
        self.host = host
        self.node = node
        self.welcome = welcome
        self.authority = authority
        self.rights = rights
        self.name = name
        self.completions = completions or {}
        self.repeated = RepeatedReplies(protocol)
        self.append_limits: AppendLimits | None = None
        """The quota of its log, if the machine doesn't enforce it itself."""
        self._contexts: dict[int, Context] = {}

    def seat(self, caller: Caller, trace: str, who: str = EVERYBODY) -> Seat:
        seat = self.host.seat(self.node, caller, who)
        context = parse_traceparent(trace)
        if context is not None:
            self._contexts[seat.number] = context
        return seat

    def vacate(self, seat: Seat) -> None:
        self._contexts.pop(seat.number, None)

    def context(self, token: Token) -> Context | None:
        """The client's span that this request is part of, if the client named one."""
        return self._contexts.get(seat_of(token))
