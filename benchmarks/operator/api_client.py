"""What a call to the API server costs the operator: our client, beside the official one in threads.

Both against one real API server on this machine, by turns, each in a process of its own, 16 calls
at a time. The API server has the same two cores: of its times only the ratio means anything.
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
    shown = {
        "mib": ("memory, with what it imports", "MiB"),
        "cpu_ms": ("CPU of a server-side apply", "ms"),
        "p50_ms": ("server-side apply, p50", "ms"),
        "p99_ms": ("server-side apply, p99", "ms"),
    }
    for figure, (what, unit) in shown.items():
        rows.append(
            versus(what, of("ours", figure), unit, _OTHER, of("official", figure), at_most=1)
        )
        rows.append(row(f"{what}: {_OTHER}", of("official", figure), unit))
    rates = of("ours", "per_s"), of("official", "per_s")
    rows.append(versus("16 at once", rates[0], "calls/s", _OTHER, rates[1], at_least=1))
    lines = [
        Line(kind, [(figure, sorted(of(kind, figure))[len(found[kind]) // 2]) for figure in shown])
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
