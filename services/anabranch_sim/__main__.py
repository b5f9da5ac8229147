"""`python -m anabranch_sim [bolt|belfast|operator] SEED`: one seed again; `--seeds N`: many."""

import sys

from anabranch_sim.commands import main

if __name__ == "__main__":
    sys.exit(main())
