"""The function that plans each kind of object."""

from collections.abc import Mapping

from anabranch_operator.api import names
from anabranch_operator.plan.certificates.schedule import plan_certificates
from anabranch_operator.plan.engine.dependencies import CERTIFICATES, MEMBERS
from anabranch_operator.plan.engine.reconciler import Planner
from anabranch_operator.plan.groups.sequencers import plan_sequencers
from anabranch_operator.plan.groups.shards import plan_shards
from anabranch_operator.plan.log.forks import plan_fork
from anabranch_operator.plan.log.logs import plan_log
from anabranch_operator.plan.log.orphans import plan_orphan
from anabranch_operator.plan.metadata.members import plan_members
from anabranch_operator.plan.pool.pools import plan_pool

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
