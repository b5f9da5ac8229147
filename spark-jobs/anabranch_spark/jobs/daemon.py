"""Spark's daemon of Python workers, with what is installed instead of with Spark's archives.

Spark puts its `pyspark.zip`, `py4j.zip` and its largest jar before what is installed. Each process
then compiles all that it imports from there, and Python reads the directory of each archive again
when a task starts, once for every folder that it has imported from: 70 ms of the processor.
"""

import gc
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path


def without_archives(path: Sequence[str], package: str) -> list[str]:
    """The path for imports without the files of this package: what they hold is installed."""
    return [each for each in path if Path(package) not in Path(each).parents]


def main() -> None:
    given = [*sys.path]
    sys.path[:] = [each for each in given if not Path(each).is_file()]
    spec = find_spec("pyspark")
    folders = spec.submodule_search_locations if spec else None
    # Without an installed pyspark, it has to come from the archives.
    sys.path[:] = without_archives(given, folders[0]) if folders else given
    for left_out in {*given} - {*sys.path}:
        sys.path_importer_cache.pop(left_out, None)

    from pyspark import daemon

    # A worker has Python look for cycles after each task: never among what it began with.
    gc.freeze()
    daemon.manager()


if __name__ == "__main__":
    main()
