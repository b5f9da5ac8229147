"""Who plans what: one function a kind."""

from collections.abc import Mapping

from anabranch_operator.api import names
from anabranch_operator.plan.forks import plan_fork
from anabranch_operator.plan.interest import CERTIFICATES, MEMBERS
from anabranch_operator.plan.logs import plan_log
from anabranch_operator.plan.members import plan_members
from anabranch_operator.plan.orphans import plan_orphan
from anabranch_operator.plan.pools import plan_pool
from anabranch_operator.plan.reconciler import Planner
from anabranch_operator.plan.sequencers import plan_sequencers
from anabranch_operator.plan.shards import plan_shards
from anabranch_operator.plan.trust import plan_certificates

PLANNERS: Mapping[str, Planner] = {
    names.LOG: plan_log,
    names.FORK: plan_fork,
    names.ORPHAN: plan_orphan,
    names.POOL: plan_pool,
    names.SEQUENCERS: plan_sequencers,
    names.SHARDS: plan_shards,
    MEMBERS: plan_members,
    CERTIFICATES: plan_certificates,
}

WHOLE = (CERTIFICATES, MEMBERS)
"""Planned for the installation as a whole."""
