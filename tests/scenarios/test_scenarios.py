"""Histories as traces: each `*.txt` holds commands, each followed by what the state says, indented.

After a deliberate change, `pytest tests/scenarios --rewrite` writes what is said anew: read the
difference.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from anabranch.core.bolt.protocol.commands import (
    Batch,
    Command,
    CommitCursor,
    CommitObject,
    Committed,
    CreateLog,
    DeleteLog,
    Description,
    Done,
    Entry,
    Expire,
    ForkLog,
    Outcome,
    Promote,
    Promotion,
    Receipt,
    RegisterBroker,
    Row,
    Sequenced,
    Squash,
    Trim,
)
from anabranch.core.bolt.protocol.compaction import Copied, Joined, SwapExtents, Swapped
from anabranch.core.bolt.protocol.marks import AlreadyAppended
from anabranch.core.bolt.protocol.queries import (
    At,
    Compare,
    Comparison,
    Cursors,
    Describe,
    PositionAt,
    Query,
    ReadCursors,
    Resolve,
    Resolved,
    ResolveReceipt,
    Settled,
    Slice,
)
from anabranch.core.bolt.state import snapshot
from anabranch.core.bolt.state.invariants import Witness, broken
from anabranch.core.bolt.state.state import State
from anabranch.core.bolt.state.swap import copied
from anabranch.core.errors.refused import Refused
from anabranch.core.limits import Limits
from anabranch.core.records.objects import object_id
from anabranch.core.types import NEVER, Kind, LogId, OnParentDelete, OnPromote

SAID = "    "
SCENARIOS = sorted(Path(__file__).parent.glob("*.txt"))


class Stage:
    """Plays commands on a state; a record is a name, and its log the one it was appended to."""

    def __init__(self) -> None:
        self.state = State("c", Limits())
        self.now = 1_000
        self.sequence = 0
        self.records: dict[tuple[int, int, int], str] = {}
        self.receipts: dict[str, Receipt] = {}
        self.ids: dict[str, LogId] = {}
        self.copied: SwapExtents | None = None
        self.witness = Witness(self.batches)
        self.do(RegisterBroker("b"))

    def do(self, command: Command, request: bytes = b"") -> Outcome:
        outcome = self.state.apply(Entry(self.now, request, command))
        assert broken(self.state.replica) == []
        assert self.witness.look(self.state.replica) == []
        if isinstance(outcome, Description):
            self.ids[outcome.name] = outcome.id
        return outcome

    def batches(self, object: int, offset: int, length: int) -> list[tuple[int, str]]:
        """What a witness knows records by, wherever they lie: their names."""
        return [(1, self.records[object, at, 0]) for at in range(offset, offset + length, 10)]

    def ask(self, query: Query) -> object:
        return self.state.answer(query)

    def id(self, name: str) -> LogId:
        """By any name that was ever given: a handle outlives its log."""
        return self.ids.get(name.replace("@", "--"), LogId(999))

    def play(self, line: str) -> str:
        verb, *words = line.split()
        options = dict(word.split("=", 1) for word in words if "=" in word)
        plain = [word for word in words if "=" not in word]
        self.now += 1
        return VERBS[verb](self, plain, options)


Words = list[str]
Options = dict[str, str]


def _create(stage: Stage, words: Words, _: Options) -> str:
    return _told(stage.do(CreateLog(words[0])))


def _delete(stage: Stage, words: Words, _: Options) -> str:
    return _told(stage.do(DeleteLog(stage.id(words[0]), force="force" in words)))


def _append(stage: Stage, words: Words, options: Options) -> str:
    """`append LOG r1 r2 | r3`: one object, bars between its batches; `producer=`, `seq=`, `as=`."""
    log, *names = words
    batches, batch = list[list[str]](), list[str]()
    for name in [*names, "|"]:
        if name == "|":
            batches.append(batch)
            batch = []
        else:
            batch.append(name)
    stage.sequence += 1
    object = object_id(1, stage.sequence)
    producer, sequence = int(options.get("producer", -1)), int(options.get("seq", 0))
    row, offset = Row(stage.id(log), 0, []), 0
    for batch in batches:
        row.batches.append(Batch(10 * len(batch), len(batch), producer, 0, sequence))
        for nth, name in enumerate(batch):
            stage.records[object, offset + 10 * nth, 0] = name
        offset += 10 * len(batch)
        sequence += len(batch) if producer >= 0 else 0
    outcome = stage.do(CommitObject("b", object, [row]))
    if isinstance(outcome, Committed):
        return _row(stage, outcome.rows[0], options.get("as"))
    return _told(outcome)


def _row(
    stage: Stage, result: int | Receipt | Sequenced | AlreadyAppended | Refused, name: str | None
) -> str:
    match result:
        case AlreadyAppended(position):
            return f"was appended at {position}"
        case int():
            return f"at {result}"
        case Receipt(_, generation, provisional):
            stage.receipts[name or f"r{len(stage.receipts)}"] = result
            return f"withheld (generation {generation}, provisionally {provisional})"
        case Sequenced(batches):
            return "; ".join(_row(stage, each, name) for each in batches)
        case Refused():
            return _told(result)


def _fork(kind: Kind) -> Callable[[Stage, Words, Options], str]:
    def fork(stage: Stage, words: Words, options: Options) -> str:
        parent, name, *flags = words
        past, at, ttl = (options.get(key) for key in ("past", "at", "ttl"))
        return _told(
            stage.do(
                ForkLog(
                    stage.id(parent),
                    kind,
                    name,
                    past=None if past is None else int(past),
                    at=None if at is None else int(at),
                    promotable="promotable" in flags,
                    ttl_ms=None if ttl is None else int(ttl),
                    on_parent_delete=OnParentDelete(options.get("on_parent_delete", "orphan")),
                )
            )
        )

    return fork


def _promote(stage: Stage, words: Words, options: Options) -> str:
    return _told(stage.do(Promote(stage.id(words[0])), options.get("request", "").encode()))


def _squash(stage: Stage, words: Words, _: Options) -> str:
    return _told(stage.do(Squash(stage.id(words[0]))))


def _trim(stage: Stage, words: Words, _: Options) -> str:
    return _told(stage.do(Trim(stage.id(words[0]), int(words[1]))))


def _cursor(stage: Stage, words: Words, options: Options) -> str:
    if len(words) == 3:
        choice = OnPromote(options["on_promote"]) if "on_promote" in options else None
        log, name, position = words
        return _told(stage.do(CommitCursor(stage.id(log), name, int(position), choice)))
    return _said(stage.ask(ReadCursors(stage.id(words[0]))))


def _wait(stage: Stage, words: Words, _: Options) -> str:
    """Time passes, and the leader notices what has expired."""
    stage.now += int(words[0])
    expired = stage.state.replica.expired(stage.now)
    names = [log.name for log in stage.state.replica.forest.logs.values() if log.id in expired]
    if expired:
        stage.do(Expire(expired))
    return "expired: " + ", ".join(names) if names else "nothing expired"


def _read(stage: Stage, words: Words, options: Options) -> str:
    """Each record and, where it was found elsewhere, the log and position it comes from."""
    id, start = stage.id(words[0]), int(options.get("from", 0))
    answer = stage.ask(Resolve(id, start, NEVER, NEVER, "speculative" in words))
    if not isinstance(answer, Resolved):
        return _said(answer)
    shown = [each for piece in answer.slices for each in _records(stage, id, piece)]
    held = f" (held by {answer.undecided}, tail {answer.tail})" if answer.undecided else ""
    return f"{start}: {' '.join(shown) or 'nothing'}{held}"


def _records(stage: Stage, asked: LogId, piece: Slice) -> list[str]:
    names = list[str]()
    for nth in range(piece.skip, piece.skip + piece.count):
        name = stage.records[piece.object, piece.offset + 10 * nth, 0]
        if piece.origin == asked:
            names.append(name)
        else:
            origin = stage.state.replica.forest.logs[piece.origin].name
            names.append(f"{name}<{origin}:{piece.origin_first + nth - piece.skip}>")
    return names


def _tree(stage: Stage, _words: Words, _: Options) -> str:
    forest = stage.state.replica.forest
    lines: list[str] = []
    pending = [log for log in reversed([*forest.logs.values()]) if log.parent is None]
    while pending:
        log = pending.pop()
        answer = stage.ask(Describe(log.id))
        assert isinstance(answer, Description)
        text = f"{'  ' * answer.depth}{answer.name} {answer.kind} tail {answer.tail}"
        if log.parent is not None or answer.fork_point:
            text += f" forked at {answer.fork_point}"
        text += f" own {answer.own_records}"
        text += f" from {answer.start}" if answer.start else ""
        text += " promotable" if answer.promotable else ""
        text += f" settled {answer.settled}" if answer.settled < answer.tail else ""
        text += " blocked" if answer.append_blocked_by else ""
        lines.append(text)
        pending.extend(reversed([*log.children.values()]))
    return "\n".join(lines) or "no logs"


def _index(stage: Stage, words: Words, _: Options) -> str:
    """What is in the log's own index: position, records, cumulative count (AgileLog, fig. 4)."""
    index = stage.state.replica.forest.logs[stage.id(words[0])].index
    extents = zip(index.first, index.counts(), index.upto, strict=True)
    return ", ".join(f"{first}: {n} (count {upto})" for first, n, upto in extents) or "empty"


def _copy(stage: Stage, words: Words, _: Options) -> str:
    """`copy LOG FROM N...`: its extents from this one on into an object, so many as one each."""
    log, since, *together = words
    index, id = stage.state.replica.forest.logs[stage.id(log)].index, stage.id(log)
    stage.sequence += 1
    object, extents, joined, end = object_id(1, stage.sequence), list[Copied](), list[Joined](), 0
    for count in map(int, together):
        first = int(since) + len(extents)
        part = [copied(index, extent) for extent in range(first, first + count)]
        length = sum(each.length for each in part)
        joined.append(Joined(count, end, length))
        for each in part:
            for at in range(0, each.length, 10):
                name = stage.records[each.object, each.offset + at, 0]
                stage.records[object, end + at, 0] = name
            end += each.length
        extents += part
    stage.copied = SwapExtents("b", object, id, extents, joined)
    return " ".join(stage.records[object, at, 0] for at in range(0, end, 10))


def _swap(stage: Stage, _words: Words, _: Options) -> str:
    """The copy that was made last takes the place of what was copied, or doesn't."""
    assert stage.copied is not None
    outcome = stage.do(stage.copied)
    assert isinstance(outcome, Swapped)
    return f"not swapped: {outcome.why}" if outcome.why else f"{outcome.fewer} extents fewer"


def _redeem(stage: Stage, words: Words, _: Options) -> str:
    return _said(stage.ask(ResolveReceipt(stage.receipts[words[0]])))


def _diff(stage: Stage, words: Words, _: Options) -> str:
    return _said(stage.ask(Compare(stage.id(words[0]), stage.id(words[1]))))


def _position_at(stage: Stage, words: Words, _: Options) -> str:
    return _said(stage.ask(PositionAt(stage.id(words[0]), int(words[1]))))


def _garbage(stage: Stage, _words: Words, _: Options) -> str:
    """Objects that nothing refers to any more, by the first record they held."""
    names = [stage.records[object, 0, 0] for object in stage.state.replica.references.garbage]
    return " ".join(names) or "none"


def _restart(stage: Stage, _words: Words, _: Options) -> str:
    image = snapshot.save(stage.state.replica)
    stage.state.replica = snapshot.load(image, stage.state.replica.limits)
    return "recovered"


def _told(outcome: object) -> str:
    match outcome:
        case Refused(code, message):
            return f"{code}: {message}"
        case Description():
            return f"{outcome.name} tail {outcome.tail}"
        case Promotion(into, fork_point, records, squashed, cursors):
            rivals = f", squashed {', '.join(squashed)}" if squashed else ""
            followed = f", cursors {', '.join(cursors)}" if cursors else ""
            return f"into {into} at {fork_point}, {records} records{rivals}{followed}"
        case Done():
            return "done"
        case _:
            raise AssertionError(f"no way to tell {outcome}")


def _said(answer: object) -> str:
    match answer:
        case Settled(log, position):
            return f"{log} at {position}"
        case At(position):
            return str(position)
        case Cursors(positions, choices):
            told = (f"{name} {at} ({choices[name]}s)" for name, at in positions.items())
            return ", ".join(told) or "none"
        case Comparison(shared, only_a, only_b, _, since, trimmed_a, trimmed_b):
            said = f"shared up to {shared}; only {_ranges(only_a)}; only {_ranges(only_b)}"
            if since:
                trimmed = f"{_ranges(trimmed_a)}; {_ranges(trimmed_b)}"
                said += f"; compared from {since}; perhaps trimmed {trimmed}"
            return said
        case _:
            return _told(answer)


def _ranges(ranges: list[tuple[int, int]]) -> str:
    return " ".join(f"[{first}, {last})" for first, last in ranges) or "none"


VERBS: dict[str, Callable[[Stage, Words, Options], str]] = {
    "create": _create,
    "delete": _delete,
    "append": _append,
    "cfork": _fork(Kind.CONTINUOUS),
    "sfork": _fork(Kind.SEVERED),
    "promote": _promote,
    "squash": _squash,
    "trim": _trim,
    "cursor": _cursor,
    "wait": _wait,
    "read": _read,
    "tree": _tree,
    "index": _index,
    "copy": _copy,
    "swap": _swap,
    "redeem": _redeem,
    "diff": _diff,
    "position-at": _position_at,
    "garbage": _garbage,
    "restart": _restart,
}


def played(text: str) -> str:
    """The scenario with what is said now."""
    stage, shown = Stage(), list[str]()
    for line in text.splitlines():
        if line.startswith(SAID):
            continue
        shown.append(line)
        if line and not line.startswith("#"):
            shown += (SAID + said for said in stage.play(line).splitlines())
    return "\n".join(shown) + "\n"


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda path: path.stem)
def test_the_trace_is_what_happens(scenario: Path, request: pytest.FixtureRequest) -> None:
    text = scenario.read_text()
    found = played(text)
    if request.config.getoption("--rewrite", default=False):
        scenario.write_text(found)
    else:
        assert found == text


def test_there_are_scenarios() -> None:
    assert len(SCENARIOS) >= 10
