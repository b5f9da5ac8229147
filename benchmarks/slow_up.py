"""`anabranch up` whose object store is as slow as one far away: takes the same words.

`BENCH_PUT_MS` is the median and the 99th percentile of a PUT, such as `100/195`.
"""

import asyncio
import os
from collections.abc import Sequence
from itertools import count

from anabranch.apps import up
from anabranch.cli.main import main
from anabranch.core.machine import Buffer
from anabranch.shell.objects.folder import FolderStore
from benchmarks.cluster.slow_store import Latency

PUT_MS = "BENCH_PUT_MS"


class SlowStore(FolderStore):
    """Waits before each PUT."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        p50, p99 = map(float, os.environ[PUT_MS].split("/"))
        self._latency, self._numbers = Latency(p50, p99), count()

    async def put(self, name: str, parts: Sequence[Buffer]) -> None:
        await asyncio.sleep(self._latency.seconds(next(self._numbers)))
        await super().put(name, parts)


if __name__ == "__main__":
    up.FolderStore = SlowStore
    main()
