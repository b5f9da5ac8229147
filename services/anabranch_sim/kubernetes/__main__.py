"""`python -m anabranch_sim.kubernetes SEED`: one seed of operators again; `--seeds N`: many."""

import sys

from anabranch_sim.kubernetes.simulation import Report, simulate
from anabranch_sim.seeds import Kind


def counts(report: Report) -> str:
    acts = f"{report.acts} acts, {report.writes} writes, {report.strikes} strikes"
    return f"{acts}, {report.events} events"


OPERATORS = Kind(
    program="anabranch_sim.kubernetes",
    about=__doc__,
    simulate=simulate,
    counts=counts,
    amount=lambda report: report.writes,
    unit="writes",
    again="make simulate-operator",
)

if __name__ == "__main__":
    sys.exit(OPERATORS.main())
