"""The object store that lives as long as its process: for `anabranch up --memory`, and tests."""

import time
from collections.abc import Sequence

from anabranch.core.errors import CorruptObject, ObjectExists, ObjectMissing
from anabranch.core.machine import Buffer
from anabranch.core.types import Milliseconds
from anabranch.ports import StoredObject


class MemoryStore:
    """`ports.ObjectStore` in a dictionary."""

    def __init__(self) -> None:
        self._objects: dict[str, tuple[bytes, Milliseconds]] = {}

    async def put(self, name: str, parts: Sequence[Buffer]) -> None:
        if name in self._objects:
            raise ObjectExists(name)
        self._objects[name] = (b"".join(parts), time.time_ns() // 1_000_000)

    async def get(self, name: str, start: int, length: int) -> bytes:
        content = self._content(name)
        if start + length > len(content):
            raise CorruptObject(
                name, f"bytes {start}..{start + length} were asked, it ends at {len(content)}"
            )
        return content[start : start + length]

    async def size(self, name: str) -> int:
        return len(self._content(name))

    async def delete(self, names: Sequence[str]) -> None:
        for name in names:
            self._objects.pop(name, None)

    async def list(self, prefix: str = "") -> list[StoredObject]:
        return [
            StoredObject(name, len(content), at)
            for name, (content, at) in sorted(self._objects.items())
            if name.startswith(prefix)
        ]

    async def close(self) -> None:
        """What is kept goes with the process, not with a user of the store."""

    def _content(self, name: str) -> bytes:
        if name not in self._objects:
            raise ObjectMissing(name)
        return self._objects[name][0]
