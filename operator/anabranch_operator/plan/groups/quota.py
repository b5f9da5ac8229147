"""The quota of a log, as pods are told of it: a ConfigMap that they mount.

The log service keeps the quota, whoever set it. Each shard of a belfast log takes appends in a
process of its own, so each is told its share; all sequencers of an erwin log see each append, so
each is told the whole. The kubelet brings a change to the pods within about a minute.
"""

import msgspec

from anabranch_operator.api import names
from anabranch_operator.api.anabranch_names import AppendShare, Description
from anabranch_operator.plan.engine.actions import Action
from anabranch_operator.plan.engine.objects import Document, Ref
from anabranch_operator.plan.engine.world import Sequencers, World
from anabranch_operator.plan.log.services import metadata, missing
from anabranch_operator.plan.manifests.pod_parts import Mounted

CONFIG_MAP = "ConfigMap"
_KEY = "quota.json"
_DIR = f"{names.RUN_DIR}/quota"
FILE = f"{_DIR}/{_KEY}"
"""Where a process finds it."""


def mounted(sequencers: str) -> Mounted:
    """Of a pod. Without the ConfigMap nothing is limited."""
    source = {"name": _name(sequencers), "optional": True}
    volume = {"name": "quota", "configMap": source}
    return volume, {"name": "quota", "mountPath": _DIR, "readOnly": True}


def told(
    world: World, log: Ref, sequencers: Sequencers, parts: int, entry: Description
) -> tuple[Action, ...]:
    """The ConfigMap as it should be, once the log has had a quota; `parts`: of how many shares one
    pod's is one. Of several Logs that name the
    same sequencers the first by name counts: two with different quotas would never agree.
    """
    if log != min(world.logs_served_by(sequencers.ref), default=log):
        return ()
    ref = Ref(CONFIG_MAP, sequencers.ref.namespace, _name(sequencers.ref.name))
    if sequencers.object.deleting or (entry.quota is None and ref not in world.objects):
        return ()
    share = AppendShare.of(entry.name, entry.quota, max(1, parts))
    manifest: Document = {
        "apiVersion": "v1",
        "kind": CONFIG_MAP,
        "metadata": metadata(sequencers.object, ref.name, {}),
        "data": {_KEY: msgspec.json.encode(share).decode()},
    }
    return missing(world, manifest)


def _name(sequencers: str) -> str:
    return f"{sequencers}-quota"
