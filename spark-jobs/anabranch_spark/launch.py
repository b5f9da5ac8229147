"""Runs a module by its name in the driver that `spark-submit` has begun.

`spark-submit` takes a file, and `python -m` a module: this file is told the module's name, and
then the module's own arguments.
"""

import runpy
import sys
from pathlib import Path

UNKNOWN = 3
"""As of every job: nothing was told of the data. A 2 would say that they were refused."""


def main(words: list[str]) -> int:
    if not words:
        sys.stderr.write("name the module to run, such as anabranch_spark.gate\n")
        return UNKNOWN
    here = str(Path(__file__).parent)
    # A script's folder is looked into first, and modules here are called like others elsewhere.
    sys.path[:] = [path for path in sys.path if path != here]
    sys.argv[:] = words
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
