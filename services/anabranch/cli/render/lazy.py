"""How the lazy front of a Bolt log is shown: its leader's status, a line each."""

from collections.abc import Iterator

from anabranch.cli.render.words import counted, duration, instant, size
from anabranch.core.sequencing.protocol.messages import SequencingStatus


def rows_of(found: SequencingStatus) -> Iterator[tuple[str, str]]:
    room = max(0, found.ring_bytes_max - found.backlog_bytes)
    lasts = ""
    if found.ring_lasts_ms >= 0:
        lasts = f", which last {duration(found.ring_lasts_ms / 1_000)} at the present rate"
    members = counted(len(found.members), "member")
    yield "leader", f"{found.leader}, of {members} in view {found.view}"
    yield "acknowledged", "on disks" if found.durability == "fsync" else "in memories"
    yield (
        "not committed",
        f"{counted(found.backlog_records, 'record')}, {size(found.backlog_bytes)}",
    )
    yield "room", f"{size(room)} of {size(found.ring_bytes_max)}{lasts}"
    if found.held_up:
        yield "held up", found.held_up
    for view, at in found.lost_views:
        yield (
            "lost",
            f"what view {view} had acknowledged and not committed, as was found at {instant(at)}",
        )
