"""`python -m anabranch_sim SEED`: one seed again, with its options; `--seeds N`: many."""

import sys

from anabranch_sim.bolt.simulation import Report, simulate
from anabranch_sim.seeds import Kind


def counts(report: Report) -> str:
    return f"{report.calls} calls, {report.events} events, {report.strikes} strikes"


CLUSTERS = Kind(
    program="anabranch_sim",
    about=__doc__,
    simulate=simulate,
    counts=counts,
    amount=lambda report: report.calls,
    unit="calls",
    again="make simulate",
)

if __name__ == "__main__":
    sys.exit(CLUSTERS.main())
