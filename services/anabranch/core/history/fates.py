"""How logs ended: for a reason, as was answered, the first promotion winning; trims."""

from anabranch.core.history.calls import (
    Append,
    Call,
    Fate,
    Fork,
    Promote,
    Read,
    Trim,
)
from anabranch.core.history.family import Family, Latest, Member, Violation
from anabranch.core.history.settlement import killed_from
from anabranch.core.types import NEVER, Kind, LogId

ENDINGS = {"promoted": Fate.PROMOTED, "squashed": Fate.SQUASHED}


def fate_violations(family: Family) -> list[Violation]:
    fates = Fates(family)
    for member in family.members.values():
        fates.ended(member)
        fates.first_promotion(member)
        fates.cascaded(member)
        fates.kept(member)
    for call in family.history.calls:
        fates.answered(call)
    fates.trimmed_reads()
    return fates.found


class Fates:
    def __init__(self, family: Family) -> None:
        self.family = family
        self.found: list[Violation] = []
        self._trims: dict[LogId, list[Trim]] = {}
        for call in family.history.calls:
            if isinstance(call, Trim) and call.possible:
                self._trims.setdefault(family.survivor(call.log), []).append(call)

    def _fail(self, rule: str, says: str) -> None:
        self.found.append(Violation(rule, says))

    def ended(self, member: Member) -> None:
        """Alive unless somebody or something ended it; ended if somebody was told so."""
        name = self.family.name(member.log)
        if member.final is None:
            self._fail("1 acknowledged", f"{name} was made, and nobody knows of it in the end")
        elif member.fate is Fate.PROMOTED and not member.promotes:
            self._fail("8 promote", f"{name} was promoted, which nobody asked for")
        elif member.fate is Fate.PROMOTED and not member.promotable:
            self._fail("8 promote", f"{name} was promoted, but isn't promotable")
        elif member.fate in {Fate.SQUASHED, Fate.DELETED}:
            if killed_from(self.family, member) == NEVER:
                self._fail("8 squash", f"{name} was squashed for no reason")
        elif member.alive and any(call.ok for call in member.squashes + member.promotes):
            self._fail("8 ended", f"{name} was promoted or squashed, and is still alive")

    def first_promotion(self, member: Member) -> None:
        """Of rivals alive at one time one is promoted, and that squashes the others (spec, B10)."""
        rivals = [child for child in member.children if child.promotable]
        for winner in rivals:
            if winner.fate is not Fate.PROMOTED:
                continue
            since = min((call.invoked for call in winner.promotes), default=NEVER)
            for rival in rivals:
                if rival is winner or rival.birth.returned >= since:
                    continue
                theirs = min((call.invoked for call in rival.promotes), default=NEVER)
                if rival.alive:
                    says = f"{winner.name} was promoted, but its rival {rival.name} is alive"
                    self._fail("B10 first promote wins", says)
                elif rival.fate is Fate.PROMOTED and winner.birth.returned < theirs:
                    says = f"{winner.name} and its rival {rival.name} were both promoted"
                    self._fail("B10 first promote wins", says)

    def cascaded(self, member: Member) -> None:
        """Squash takes everything that continuously inherits, and severed forks made to cascade."""
        assert member.log in self.family.members
        if member.fate is not Fate.SQUASHED:
            return
        for child in member.children:
            cascades = child.kind is Kind.CONTINUOUS or (
                isinstance(child.birth, Fork) and child.birth.cascades
            )
            if cascades and child.alive:
                self._fail("8 squash", f"{member.name} was squashed, its fork {child.name} wasn't")

    def answered(self, call: Call) -> None:
        """What a refusal says of a log's end is true; nothing succeeds on a log that has ended."""
        member = self.family.members.get(call.log)
        if member is None:
            return
        name = self.family.name(call.log)
        told = ENDINGS.get(call.code)
        if told is not None and not isinstance(call, Fork):
            if member.alive:
                self._fail("8 ended", f"{name} was said to be {call.code}, and is alive")
            elif told is Fate.SQUASHED and killed_from(self.family, member) > call.returned:
                self._fail("8 squash", f"{name} was squashed before anything could have done it")
        if isinstance(call, Promote) and call.ok:
            self._squashed_by(call, member)
        if isinstance(call, Append | Trim | Fork) and call.ok:
            on = call.parent if isinstance(call, Fork) else call.log
            target = self.family.members.get(on)
            if target is not None and _over(target) < call.invoked:
                self._fail("8 ended", f"{self.family.name(on)} had ended, but took a {_kind(call)}")

    def _squashed_by(self, call: Promote, winner: Member) -> None:
        assert call.ok, "a refusal squashes nobody"
        parent = self.family.members.get(winner.parent) if winner.parent is not None else None
        named = {child.name: child for child in parent.children} if parent is not None else {}
        for name in call.squashed:
            rival = named.get(name)
            if rival is not None and rival.fate is not Fate.SQUASHED:
                self._fail("8 promote", f"{winner.name} is said to have squashed {name}: it didn't")

    def kept(self, member: Member) -> None:
        """A log starts where it was trimmed to, or where its parent was when it was forked."""
        if not member.alive or member.final is None:
            return
        trims = self._trims.get(member.log, [])
        low = max((trim.before for trim in trims if trim.ok and trim.log == member.log), default=0)
        high = max((trim.before for trim in trims), default=0)
        for elder in self.family.lineage(member.log):
            for trim in self._trims.get(elder.log, ()):
                if trim.invoked < member.birth.returned:
                    high = max(high, trim.before)
        if member.final.start < low:
            says = f"{member.name} was trimmed up to {low}, but starts at {member.final.start}"
            self._fail("D8 trim", says)
        if member.final.start > high:
            says = f"{member.name} starts at {member.final.start}, it was trimmed up to {high}"
            self._fail("D8 trim", says)

    def trimmed_reads(self) -> None:
        trims: dict[LogId, Latest] = {}
        for log in self._trims:
            done = [trim for trim in self._trims[log] if trim.ok and trim.log == log]
            trims[log] = Latest([(trim.returned, trim.before) for trim in done])
        for call in self.family.history.calls:
            if isinstance(call, Read) and call.ok and call.records and call.log in trims:
                start = trims[call.log].before(call.invoked) or 0
                if call.first < start:
                    name = self.family.name(call.log)
                    self._fail("D8 trim", f"{name} gave {call.first}, trimmed up to {start}")


def _over(member: Member) -> int:
    """When it had certainly ended; only what its own calls tell."""
    return min(
        (call.returned for call in member.squashes + member.promotes if call.ok), default=NEVER
    )


def _kind(call: Call) -> str:
    return type(call).__name__.lower()
