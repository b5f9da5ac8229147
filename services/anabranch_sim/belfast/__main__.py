"""`python -m anabranch_sim.belfast SEED`: one seed of Belfast again; `--seeds N`: many."""

import sys

from anabranch_sim.belfast.simulation import Report, simulate
from anabranch_sim.seeds import Kind


def counts(report: Report) -> str:
    done = f"{report.records} records, {report.cuts} cuts, {report.views} views"
    return f"{done}, {report.strikes} strikes, {report.events} events"


BELFAST = Kind(
    program="anabranch_sim.belfast",
    about=__doc__,
    simulate=simulate,
    counts=counts,
    amount=lambda report: report.records,
    unit="records",
    again="make simulate-belfast",
)

if __name__ == "__main__":
    sys.exit(BELFAST.main())
