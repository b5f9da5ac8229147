"""What programs may ask of logs: of any log, and of those of one engine."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from anabranch.core.errors import NotOffered

COMMON = (
    "append",
    "append_many",
    "append_nowait",
    "describe",
    "read",
    "set_quota",
    "subscribe",
    "tail",
    "trim",
)

OWN = {
    "bolt": (
        "append_batch",
        "cfork",
        "cursor",
        "cursor_choices",
        "cursors",
        "diff",
        "plan_scan",
        "position_at",
        "promote",
        "read_batches",
        "set_sum",
        "sfork",
        "squash",
        "writer",
        "writers",
    ),
    "belfast": ("append_soon", "directory", "join", "leave", "status", "subscribe_with"),
    "erwin": (
        "add_shards",
        "append_soon",
        "append_sync",
        "close_shard",
        "directory",
        "open_shard",
        "status",
        "survey",
    ),
}
"""By engine: verbs that logs of other engines lack."""


def refused(log: str, engine: str, verb: str) -> NotOffered:
    return NotOffered(log, engine, verb, ", ".join((*COMMON, *OWN[engine])))


class LogVerbs:
    """Base of every log: a verb that its engine lacks is refused by name."""

    engine = ""

    if TYPE_CHECKING:

        @property
        def name(self) -> str: ...

    else:

        def __getattr__(self, verb: str) -> Callable[..., NoReturn]:
            if not any(verb in verbs for verbs in OWN.values()):
                raise AttributeError(f"{type(self).__name__} has no {verb}")

            def refuse(*_: object, **__: object) -> NoReturn:
                raise refused(self.name, self.engine, verb)

            return refuse
