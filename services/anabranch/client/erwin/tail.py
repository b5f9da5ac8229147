"""The question how many records are durable (LazyLog, 4.4; decision 57).

A leader that was cut off doesn't know that another view has begun, and would answer with less than
what was acknowledged since. So all members of the view are asked, and the leader's answer counts if
none of them is sealed.
"""

from anabranch.client.erwin.dialect import FromNode, ToNode
from anabranch.client.erwin.directory import Whereabouts
from anabranch.client.session.call import Call
from anabranch.client.session.delivery import Delivery
from anabranch.core.errors import AnabranchError, BadFrame, Mistake, Unavailable
from anabranch.core.errors.refused import Refused
from anabranch.core.sequencing.protocol.messages import AskTail, Tail
from anabranch.core.types import Milliseconds

WHAT = "the tail"


class TailCall(Call[ToNode, FromNode, Whereabouts]):
    """Answered with the leader's `Tail`."""

    __slots__ = ("_leader_said", "_legs")

    def __init__(self, timeout_ms: Milliseconds) -> None:
        super().__init__(AskTail(0), WHAT, timeout_ms)
        self._legs: list[_Asked] = []
        self._leader_said: Tail | None = None

    def answered(self, asked: "_Asked", message: FromNode | AnabranchError) -> None:
        match message:
            case Tail():
                self._legs.remove(asked)
                if asked.leads:
                    self._leader_said = message
                if not self._legs:
                    assert self._leader_said is not None, "the leader is one of the members"
                    self._finish(answer=self._leader_said)
            case Refused():
                self._refused(message.error())
            case AnabranchError():
                self._refused(message)
            case _:
                self._refused(BadFrame(f"a tail was answered with {type(message).__name__}"))

    def broken(self) -> None:
        self._retry()

    def _ask(self) -> None:
        where = self._of_session.router
        directory = where.directory
        if directory is None or directory.leader not in directory.members:
            self._retry()
            return
        self._leader_said = None
        for node in directory.members:
            asked = _Asked(self, leads=node == directory.leader)
            self._legs.append(asked)
            asked.delivery.send(AskTail(directory.view), where.sequencer(node))

    def _refused(self, error: AnabranchError) -> None:
        self._refusal = error
        if isinstance(error, Mistake):
            self._finish(error=error)
        else:
            self._retry()

    def _retry(self) -> None:
        self._stop()
        self._hush()
        self._tries += 1
        commons = self._of_session
        commons.router.ask_another()
        self._again = commons.alarms.after(commons.pause(self._tries), self._ask)

    def _stop(self) -> None:
        for each in self._legs:
            each.delivery.stop()
        self._legs = []

    def _forget(self) -> None:
        self._stop()
        super()._forget()

    def _changes(self) -> bool:
        return False

    def _in_vain(self) -> AnabranchError:
        commons = self._of_session
        owing = sorted(node for each in self._legs for node in each.delivery.owing)
        if owing:
            reason = f"{', '.join(owing)} didn't answer, and all members of the view must"
        elif self._refusal is not None:
            reason = self._refusal.message
        else:
            reason = commons.trouble
        return commons.rejection or Unavailable(WHAT, reason)

    def _learn(self, answer: FromNode) -> None:
        """A tail says nothing of where the log is."""


class _Asked:
    """One member."""

    __slots__ = ("_call", "delivery", "leads")

    def __init__(self, call: TailCall, *, leads: bool) -> None:
        self._call, self.leads = call, leads
        self.delivery: Delivery[ToNode, FromNode] = Delivery(self)

    def answered(self, message: FromNode | AnabranchError) -> None:
        self._call.answered(self, message)

    def lost(self, *, sent: bool) -> None:
        self._call.broken()
