"""The engines whose logs are SequencerSets and ShardGroups."""

from collections.abc import Mapping

from anabranch_operator.api.common import GroupEngineName
from anabranch_operator.plan.belfast.engine import BELFAST
from anabranch_operator.plan.erwin.engine import ERWIN
from anabranch_operator.plan.groups.engine import GroupEngine

ENGINES: Mapping[GroupEngineName, GroupEngine] = {
    GroupEngineName.BELFAST: BELFAST,
    GroupEngineName.ERWIN: ERWIN,
}
