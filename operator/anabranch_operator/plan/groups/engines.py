"""The engines whose logs are SequencerSets and ShardGroups, and lazy fronts."""

from collections.abc import Mapping

from anabranch_operator.api.common import GroupEngineName
from anabranch_operator.plan.belfast.engine import BELFAST
from anabranch_operator.plan.erwin.engine import ERWIN
from anabranch_operator.plan.groups.engine import GroupEngine
from anabranch_operator.plan.lazy.engine import LAZY

ENGINES: Mapping[GroupEngineName, GroupEngine] = {
    GroupEngineName.BELFAST: BELFAST,
    GroupEngineName.ERWIN: ERWIN,
    GroupEngineName.LAZY: LAZY,
}
