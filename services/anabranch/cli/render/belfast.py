"""How a Belfast log is shown: its leader's status as tables, and rates between two looks at it."""

from collections.abc import Iterator

from msgspec.structs import asdict

from anabranch.cli.render.words import number, per_second, percent, share_of_all
from anabranch.core.belfast.protocol.messages import ShardStatus, Status

OVERVIEW = (
    "LEADER",
    ">TERM",
    ">VIEW",
    "MODE",
    ">WINDOW",
    ">CUT",
    ">CONFIRMED",
    ">AHEAD",
    ">SPEC%",
    ">VOIDED",
    "DURABLE",
)
SHARDS = (
    "SHARD",
    "STANDING",
    "PRIMARY",
    ">EPOCH",
    ">QUOTA",
    ">LAG",
    ">RECORDS",
    ">NO-OPS",
    ">QUEUED",
    ">SPEC%",
    ">VOIDED",
)
WINDOWS = ("SHARD", ">QUOTA", ">ROUNDS", ">NEXT QUOTA", ">LAG", ">LAST POSITION")


def document(found: Status) -> dict[str, object]:
    """The same for programs: every field by its name."""
    shards = [{**asdict(each), "standing": each.standing.name.lower()} for each in found.shards]
    return {**asdict(found), "mode": found.mode.name.lower(), "shards": shards}


def overview(found: Status) -> Iterator[tuple[str, ...]]:
    yield (
        found.leader,
        str(found.term),
        str(found.view),
        "at rest" if found.at_rest else found.mode.name.lower().replace("_", " "),
        str(found.window),
        f"{found.cut}/{found.cuts}",
        str(found.confirmed),
        number(found.horizon - found.confirmed),
        percent(found.foretold, sum(shard.records for shard in found.shards)),
        number(found.voided),
        "on disks" if found.fsync else "in memories",
    )


def shards(found: Status) -> Iterator[tuple[str, ...]]:
    for shard in found.shards:
        yield (
            shard.name,
            standing(shard),
            shard.primary,
            str(shard.epoch),
            number(shard.quota),
            number(shard.lag),
            number(shard.records),
            share_of_all(shard.noops, shard.records),
            number(shard.queued),
            percent(shard.foretold, shard.records),
            number(shard.voided),
        )


def notes(found: Status, expected: int) -> Iterator[str]:
    """What isn't in the table of a log whose nodes are still being started."""
    if len(found.shards) < expected:
        yield f"{len(found.shards)} of {expected} shards have joined so far"


def windows(found: Status) -> Iterator[tuple[str, ...]]:
    for shard in found.shards:
        yield (
            shard.name,
            number(shard.quota),
            f"{shard.rounds} of window {shard.window}",
            f"{number(shard.next_quota)} of window {found.published}",
            number(shard.lag),
            str(shard.last),
        )


def standing(shard: ShardStatus) -> str:
    told = shard.standing.name.lower()
    if shard.resting:
        return f"{told}, resting"
    return f"{told}, {len(shard.silent)} silent" if shard.silent else told


class Rates:
    """What each shard did between two looks."""

    columns = (
        "SHARD",
        "STANDING",
        ">RECORDS/s",
        ">NO-OPS/s",
        ">QUOTA",
        ">LAG",
        ">QUEUED",
        ">SIGNALS",
        ">SPEC%",
        ">VOIDED",
    )

    def __init__(self) -> None:
        self._before: dict[str, ShardStatus] = {}
        self._at_s = 0.0

    def rows(self, found: Status, now_s: float) -> Iterator[tuple[str, ...]]:
        took_s = now_s - self._at_s
        before, self._before = self._before, {shard.name: shard for shard in found.shards}
        self._at_s = now_s
        for shard in found.shards:
            last = before.get(shard.name)
            records = shard.records - last.records if last else 0
            foretold = shard.foretold - last.foretold if last else 0
            yield (
                shard.name,
                standing(shard),
                per_second(records, took_s) if last else "-",
                per_second(shard.noops - last.noops, took_s) if last else "-",
                number(shard.quota),
                number(shard.lag),
                number(shard.queued),
                number(shard.signals),
                percent(foretold, records) if last else "-",
                number(shard.voided),
            )
