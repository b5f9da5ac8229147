"""`python -m anabranch_sim [KIND] SEED`: one seed again; `--seeds N`: many. `-h` has the kinds."""

import sys

from anabranch_sim.commands import main

if __name__ == "__main__":
    sys.exit(main())
