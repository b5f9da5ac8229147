"""Sees all that the nodes of an Erwin log are asked and say, and holds it against E3 to E9.

By letters: stable positions come from drops (E3), are on the shards (E4) and never change (E4, E7);
views and configurations are one for each number, and a view begins with a sealed member's state
(E6, E8). By answers: no member takes an append of a view after it was sealed (E6); reads have only
what is stable, all of it, and one content for each position (E5, E9).
"""

from typing import Any

from anabranch.core.erwin.invariants.order import Order
from anabranch.core.erwin.invariants.reads import Reads
from anabranch.core.erwin.protocol import messages as shard_messages
from anabranch.core.erwin.protocol.letters import Configuration, Push, Pushed, ShardPresent
from anabranch.core.erwin.protocol.rows import NO_SHARD, Fence
from anabranch.core.machine import Effect, Event, Replies, Reply, Request, Requests, Send
from anabranch.core.sequencing.protocol.ids import Member
from anabranch.core.sequencing.protocol.letters import Dropped, Prepare, Prepared, Sealed, Start
from anabranch.core.sequencing.protocol.messages import (
    Append,
    AppendMeta,
    AskTail,
    Found,
    Tail,
    Taken,
)
from anabranch.core.sequencing.view import Ballot, View
from anabranch.core.types import Position


class Witness:
    """Told of every event that a node is given, and of every effect that it performs."""

    def __init__(self) -> None:
        self.violations: list[str] = []
        self.order = Order(self._violated)
        self.reads = Reads(self.order, self._violated)
        self.views: dict[int, View] = {}
        self.lost: set[int] = set()
        """Views whose unordered records were given up."""
        self.configuration: Configuration | None = None
        """The latest that a controller has sent."""
        self._started: set[int] = set()
        """Views that members were told to start."""
        self._versions: dict[int, Configuration] = {}
        self._sealed: set[tuple[int, str]] = set()
        self._prepared: set[tuple[Ballot, Member, Position]] = set()
        """Which life of a member has prepared for a ballot, and for which base. A later life may
        answer the same question, which the network held up.
        """
        self._dropped: dict[tuple[int, str], Position] = {}
        """By view and member: what it has said to be ordered in its journal."""
        self._held: dict[int, Position] = {}
        """By shard: what it holds of pushes of the order's fence."""
        self._fences: dict[str, int] = {}
        """By node of a shard: the last fence that it has said to have taken."""
        self._dead: set[Member] = set()
        """Lives that ended and left nothing."""
        self._lives: dict[str, set[int]] = {}
        self._views_asked: dict[tuple[str, int], int] = {}
        """By node and token: the view of an append, or of the question for the tail. What a member
        is asked before it is sealed may be answered after that: it was taken before.
        """
        self._asked_sealed: set[tuple[str, int]] = set()

    def on_event(self, node: str, event: Event) -> None:
        """A node is given this event."""
        match event:
            case Request(token, message):
                self._asked(node, token, message)
            case Requests(tokens, messages):
                for token, message in zip(tokens, messages, strict=True):
                    self._asked(node, token, message)
            case _:
                pass

    def observe(self, node: str, effect: Effect) -> None:
        """A node performs this effect."""
        match effect:
            case Send(to, letter):
                if isinstance(letter, Push):
                    self.reads.pushed(to, letter)
                elif isinstance(letter, Pushed):
                    self.reads.held(letter)
                self._letter(node, letter)
            case Reply(token, message):
                self._answer(node, token, message)
            case Replies(tokens, messages):
                for token, message in zip(tokens, messages, strict=True):
                    self._answer(node, token, message)
            case _:
                pass

    def on_loss(self, node: str) -> None:
        """All that this node has held until now is gone."""
        self._dead.update(Member(node, life) for life in self._lives.pop(node, ()))

    def _violated(self, rule: str, says: str) -> None:
        self.violations.append(f"{rule}: {says}")

    def _asked(self, node: str, token: int, message: Any) -> None:
        match message:
            case Append(view=view) | AppendMeta(view=view) | AskTail(view):
                self._views_asked[node, token] = view
                if (view, node) in self._sealed:
                    self._asked_sealed.add((node, token))
            case shard_messages.Read() | shard_messages.Subscribe():
                self.reads.asked(node, token, message)
            case _:
                pass

    def _answer(self, node: str, token: int, message: Any) -> None:
        match message:
            case Taken() | Tail():
                self._taken(node, token)
            case Found(position):
                self._found(node, position)
            case shard_messages.Records():
                self.reads.answered(node, token, message)
            case shard_messages.Delivered():
                self.reads.delivered(node, token, message)
            case _:
                pass

    def _found(self, node: str, position: Position) -> None:
        """A receipt is as good as a push that calls the append stable."""
        if position < self.order.stable:
            return
        rows = self.order.between(position, position + 1)
        led = [view for view in self.views.values() if view.leader == node]
        if not rows or not led:
            self._violated("E5", f"{node} says that {position} is final, which nobody pushed")
            return
        view = max(led, key=lambda view: view.number)
        fence = self.order.fence
        fence = fence if fence.view == view.number else Fence(view.number, 0)
        self._stable(node, view, fence, rows[0].end)

    def _taken(self, node: str, token: int) -> None:
        view = self._views_asked.get((node, token))
        if view is None:
            self._violated("E6", f"{node} answers {token}, which nobody asked")
            return
        if (node, token) in self._asked_sealed:
            self._violated("E6", f"{node} takes what is of view {view} after it was sealed")
        known = self.views.get(view)
        if known is None or node not in known.nodes:
            self._violated("E6", f"{node} takes what is of view {view}, of which it is no member")

    def _letter(self, node: str, letter: Any) -> None:
        match letter:
            case Push():
                self._push(node, letter)
            case Pushed(fence=fence, shard=shard, upto=upto) if fence == self.order.fence:
                self._pushed(node, shard, upto)
            case ShardPresent(fence=number):
                self._fences[node] = number
            case Dropped(view, upto):
                self._dropped[view, node] = max(self._dropped.get((view, node), 0), upto)
            case Sealed(view=view, life=life):
                self._lives.setdefault(node, set()).add(life)
                self._sealed.add((view, node))
            case Prepare():
                self._prepare(node, letter)
            case Prepared(ballot=ballot, life=life, base=base):
                self._lives.setdefault(node, set()).add(life)
                self._prepared.add((ballot, Member(node, life), base))
            case Start(view):
                self._started.add(view.number)
                self._view(node, view)
            case Configuration():
                self._configured(node, letter)
            case _:
                pass

    def _push(self, node: str, push: Push) -> None:
        view = self.views.get(push.fence.view)
        if view is None or view.leader != node:
            self._violated("E6", f"{node} pushes as the leader of view {push.fence.view}")
            return
        if push.fence > self.order.fence:
            self._held.clear()
        self.order.push(push)
        if push.stable > self.order.stable:
            self._stable(node, view, push.fence, push.stable)
        if push.trimmed > self.order.stable:
            self._violated("E5", f"{node} trims to {push.trimmed}, stable is {self.order.stable}")
        self.order.trimmed = max(self.order.trimmed, push.trimmed)

    def _stable(self, node: str, view: View, fence: Fence, stable: Position) -> None:
        """The leader calls this position stable for the first time."""
        if fence < self.order.fence and stable > self.order.base:
            says = f"{fence} calls {stable} stable, {self.order.fence} began below it"
            self._violated("E3", says)
        for member in view.nodes if stable > view.base else ():
            ordered = max(self._dropped.get((view.number, member), 0), view.base)
            if member != node and ordered < stable:
                says = f"{node} calls {stable} stable, ordered at {member} is {ordered}"
                self._violated("E3", says)
        base = self.order.base
        for row in self.order.settle(stable):
            held = row.end if row.shard == NO_SHARD else self._held.get(row.shard, 0)
            if fence == self.order.fence and row.first >= base and held < row.end:
                says = f"{node} calls {stable} stable, shard {row.shard} holds up to {held}"
                self._violated("E4", says)

    def _pushed(self, node: str, shard: int, upto: Position) -> None:
        if upto > self.order.end:
            self._violated("E4", f"{node} holds up to {upto}, rows end at {self.order.end}")
        self._held[shard] = max(self._held.get(shard, 0), upto)

    def _prepare(self, node: str, prepare: Prepare) -> None:
        before = self.views.get(prepare.ballot.view - 1)
        if prepare.source == "" or before is None:
            return
        if (before.number, prepare.source) not in self._sealed:
            says = f"{node} takes the state of {prepare.source}, which view {before.number} has not"
            self._violated("E6", f"{says} sealed")

    def _view(self, node: str, view: View) -> None:
        known = self.views.setdefault(view.number, view)
        if known is not view:
            if known != view:
                self._violated("E6", f"{node} has {view} beside {known}")
            return
        for member in view.members:
            if (view.ballot, member, view.base) not in self._prepared:
                self._violated("E6", f"{member} isn't prepared for {view}")
        if view.leader not in view.nodes:
            self._violated("E6", f"the leader of {view} is no member")

    def _begins(self, view: View) -> None:
        """Somebody has sealed the view before, so that nothing was acknowledged in it any more."""
        before = self.views.get(view.number - 1)
        if before is None or before.number in self.lost:
            return
        if not any((before.number, member) in self._sealed for member in before.nodes):
            self._violated("E6", f"view {view.number} begins, nobody has sealed the one before")

    def _configured(self, node: str, configuration: Configuration) -> None:
        known = self._versions.setdefault(configuration.version, configuration)
        if known is not configuration:
            if known != configuration:
                self._violated("E8", f"{node} has another version {configuration.version}")
            return
        for number, _ in configuration.lost_views:
            self._lost(number, configuration.term)
        if configuration.view is not None:
            self._gone_back(node, configuration)
            self._go_on_after_loss(configuration, configuration.view)
            self._view(node, configuration.view)
            self._begins(configuration.view)
        latest = self.configuration
        if latest is None or configuration.version > latest.version:
            self.configuration = configuration
            self.reads.configured(configuration)

    def _go_on_after_loss(self, configuration: Configuration, view: View) -> None:
        """With what shards hold: pushes of the lost view may have reached none of them."""
        if view.number in self.views or view.number - 1 not in self.lost:
            return
        primaries = [shard.primary for shard in configuration.shards]
        fence = max((self._fences.get(each, 0) for each in primaries), default=0)
        self.order.lose(fence, view.base)

    def _gone_back(self, node: str, configuration: Configuration) -> None:
        """A view that nobody has started can be given up for the one before."""
        latest, view = self.configuration, configuration.view
        if view is None or latest is None or configuration.version < latest.version:
            return
        for number in [number for number in self.views if number > view.number]:
            if number in self._started:
                self._violated("E8", f"{node} goes back to view {view.number}, {number} is started")
            del self.views[number]

    def _lost(self, number: int, term: int) -> None:
        view = self.views.get(number)
        if view is None or number in self.lost:
            return
        self.lost.add(number)
        left = [member for member in view.members if member not in self._dead]
        if left:
            self._violated("E1", f"view {number} is given up, and {left} are left of it")
        before = self.views.get(number - 1)
        if number in self._started or view.ballot.term != term or before is None:
            return  # another controller can't know that nobody has started it
        sealed = [member for member in before.members if member not in self._dead]
        if sealed and before.number not in self.lost:
            self._violated("E1", f"view {number} never started, and is given up beside {sealed}")
