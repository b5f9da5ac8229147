"""What a program pays for importing the client, before it has done anything."""

import os
import subprocess
import sys
import tempfile
import time
from functools import partial

from benchmarks.report import SCRATCH, Chart, Found, Line, row
from benchmarks.size import Size
from benchmarks.timing import interleaved

_NOTHING = "pass"
_CLIENT = "import anabranch; anabranch.connect"
_ASYNC = "import anabranch; anabranch.aio.connect"


def run(size: Size) -> Found:
    rounds = size.of(21, 2)
    programs = {"nothing": _NOTHING, "the client": _CLIENT, "the asyncio client": _ASYNC}
    with tempfile.TemporaryDirectory(dir=SCRATCH) as cache:
        # Installed packages come compiled, or are compiled once.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for program in programs.values():
            _ms(program, environment)
        works = {name: partial(_ms, each, environment) for name, each in programs.items()}
        found = interleaved(rounds, works)
    nothing = found["nothing"]
    rows = [row("Python itself, to start and end", nothing, "ms")]
    for name in ("the client", "the asyncio client"):
        alone = [took - base for took, base in zip(found[name], nothing, strict=True)]
        rows.append(row(f"import of {name}", alone, "ms", at_most=150))
    bars = [(name, each.value) for name, each in zip(found, rows, strict=True)]
    chart = Chart(
        title="Import of the client package", x="", y="ms", lines=[Line("import", list(bars))]
    )
    return Found(rows, [chart])


def _ms(program: str, environment: dict[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)
    return (time.perf_counter() - began) * 1e3
