"""Who plans what: one function a kind."""

from collections.abc import Mapping

from anabranch_operator.api import names
from anabranch_operator.plan.forks import plan_fork
from anabranch_operator.plan.interest import CERTIFICATES
from anabranch_operator.plan.logs import plan_log
from anabranch_operator.plan.reconciler import Planner
from anabranch_operator.plan.trust import plan_certificates

PLANNERS: Mapping[str, Planner] = {
    names.LOG: plan_log,
    names.FORK: plan_fork,
    CERTIFICATES: plan_certificates,
}

WHOLE = (CERTIFICATES,)
"""Planned for the installation as a whole."""
