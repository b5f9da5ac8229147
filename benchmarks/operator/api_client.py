"""What a call to the API server costs the operator: our client, beside the official one in threads.

Both against one real API server on this machine, by turns, each in a process of its own that has
loaded kopf. The API server has the same two cores, and they are what bounds calls in a second.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.kubernetes.control_plane import ControlPlane

from benchmarks.report import SCRATCH, Chart, Found, Line, Row, row, versus
from benchmarks.size import Size

_KINDS = ("ours", "official")
_OTHER = "the official client"
_CHARTED = ("mib", "cpu_ms", "p50_ms")
_FIGURES: tuple[tuple[str, str, str, dict[str, float]], ...] = (
    ("mib", "memory, with what it imports", "MiB", {"at_most": 0.5}),
    ("cpu_ms", "CPU of a server-side apply", "ms", {"at_most": 0.5}),
    ("p50_ms", "one apply at a time, p50", "ms", {"at_most": 1.1}),
    ("p99_ms", "one apply at a time, p99", "ms", {}),
    ("per_s", "16 at once", "calls/s", {}),
)


def run(size: Size) -> Found:
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        plane = ControlPlane(Path(folder) / "plane")
        plane.start()
        try:
            return _measure(plane, size)
        finally:
            plane.kill()


def _measure(plane: ControlPlane, size: Size) -> Found:
    namespace = plane.api.namespace("calls")
    calls = size.of(500, 32)
    found: dict[str, list[dict[str, float]]] = {kind: [] for kind in _KINDS}
    for turn in range(size.of(5, 1) + 1):
        for kind in sorted(_KINDS, reverse=bool(turn % 2)):
            told = _worker(kind, plane, namespace, calls)
            if turn:  # the first one warms up
                found[kind].append(told)

    def of(kind: str, figure: str) -> list[float]:
        return [each[figure] for each in found[kind]]

    rows: list[Row] = []
    for figure, what, unit, bar in _FIGURES:
        rows.append(versus(what, of("ours", figure), unit, _OTHER, of("official", figure), **bar))
        rows.append(row(f"{what}: {_OTHER}", of("official", figure), unit))
    lines = [
        Line(
            kind, [(figure, sorted(of(kind, figure))[len(found[kind]) // 2]) for figure in _CHARTED]
        )
        for kind in reversed(_KINDS)
    ]
    chart = Chart(title="Clients of the API server", x="", y="MiB, ms", lines=lines)
    return Found(rows, [chart])


def _worker(kind: str, plane: ControlPlane, namespace: str, calls: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.operator.api_calls", kind]
    done = subprocess.run(
        [*command, str(plane.api.kubeconfig), namespace, str(calls)],
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)
