"""Renew a scan plan for as long as a task reads, also while Spark takes no rows from it; or a
compactor for as long as a job copies.
"""

import threading
from typing import Any, Protocol, Self

from anabranch.errors import AnabranchError, CompactorEnded, PlanEnded

RENEWALS = 4
"""So many for each length of a lease: some may fail before the plan lapses."""

TIMEOUT_S = 5.0
"""Of one renewal. The end of a task waits for no longer, also if the service is away."""


class Leased(Protocol):
    """A scan plan or a compactor."""

    def renew(self, lease: float, /, *, timeout: float | None = None) -> Any: ...


class Renewal:
    """A thread that renews the plan or compactor; use it with `with`."""

    def __init__(self, plan: Leased, lease: float) -> None:
        self._plan, self._lease = plan, lease
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="anabranch-lease", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        wait = 0.0  # at once: the plan may have waited long for this task
        while not self._over.wait(wait):
            wait = self._lease / RENEWALS
            try:
                self._plan.renew(self._lease, timeout=TIMEOUT_S)
            except (PlanEnded, CompactorEnded):
                return  # whoever signs or fetches next finds out, and plans the rest anew
            except AnabranchError:
                continue  # the service may be back before the lease is over
