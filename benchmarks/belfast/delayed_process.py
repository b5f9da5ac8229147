"""`python -m benchmarks.belfast.delayed_process shard ...`: a process of ours at a distance.

It is the command line, with a mesh that sends every letter later by what BENCHMARK_DELAY_US says.
"""

import os
import sys
from unittest.mock import patch

from anabranch.apps.pods import log_node
from anabranch.cli.main import main
from benchmarks.distance.mesh import DelayedMesh

VARIABLE = "BENCHMARK_DELAY_US"
COMMAND = (sys.executable, "-m", "benchmarks.belfast.delayed_process")

if __name__ == "__main__":
    DelayedMesh.delay_us = int(os.environ[VARIABLE])
    with patch.object(log_node, "Mesh", DelayedMesh):
        main()
