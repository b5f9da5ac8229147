"""Spark's daemon of Python workers, with pyspark from this environment instead of from a zip file.

Spark puts its own `pyspark.zip` before what is installed. Each process then compiles all that it
imports from there, and for each task Python reads the zip's directory again, once for every folder
that it has imported from: together 50 ms of the processor for a task.
"""

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

_ZIP = Path("python", "lib", "pyspark.zip")
"""Where it lies in an installed pyspark."""


def without_zip(path: Sequence[str], package: str | None) -> list[str]:
    """The path for imports without the zip of this installed package: both are the same code."""
    if package is None:
        return [*path]
    return [each for each in path if Path(each) != Path(package, _ZIP)]


def main() -> None:
    given = [*sys.path]
    sys.path[:] = [each for each in given if Path(each).name != _ZIP.name]
    spec = find_spec("pyspark")
    folders = spec.submodule_search_locations if spec else None
    sys.path[:] = without_zip(given, folders[0] if folders else None)

    from pyspark import daemon

    daemon.manager()


if __name__ == "__main__":
    main()
