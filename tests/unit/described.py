"""A log as the metadata describe it, plain but for what a test says."""

from typing import Any

from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.types import Kind, LogId, OnParentDelete


def described(log: LogId, name: str = "orders", **more: Any) -> Description:
    plain: dict[str, Any] = {
        "kind": Kind.ROOT,
        "root": name,
        "parent": None,
        "fork_point": 0,
        "start": 0,
        "tail": 0,
        "settled": 0,
        "own_records": 0,
        "promotable": False,
        "depth": 0,
        "forks": 0,
        "generation": 0,
        "created_at": 0,
        "by": "",
        "why": "",
        "on_parent_delete": OnParentDelete.ORPHAN,
    }
    return Description(id=log, name=name, **{**plain, **more})
