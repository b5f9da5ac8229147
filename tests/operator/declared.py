"""Objects that are taken as they stand, and objects that are refused, with the words of it."""

from dataclasses import dataclass
from typing import Any

from anabranch_operator.api import names

Document = dict[str, Any]

FORK, LOG, POOL = names.FORK, names.LOG, names.POOL
SEQUENCERS, SHARDS = names.SEQUENCERS, names.SHARDS
VOLUME: Document = {"volumeClaim": {"size": "10Gi"}}
PARENT: Document = {"parent": {"name": "orders"}}
CONTAINER: Document = {"name": "check", "image": "check"}


def gate(**template: Any) -> Document:
    return {
        "jobTemplate": template or {"spec": {"template": {"spec": {"containers": [CONTAINER]}}}}
    }


def pod(**spec: Any) -> Document:
    return gate(spec={"template": {"spec": spec}})


def fork(**spec: Any) -> Document:
    return {**PARENT, **spec}


def judged(policy: str, **more: Any) -> Document:
    return fork(promotable=True, promotion={"policy": policy, **more})


def pool(**spec: Any) -> Document:
    return {"image": "anabranch", **spec}


def sequencers(**spec: Any) -> Document:
    return {"image": "anabranch", "storage": VOLUME, **spec}


def shards(**spec: Any) -> Document:
    return {"image": "anabranch", "sequencers": "orders", "storage": VOLUME, **spec}


def volume(**claim: Any) -> Document:
    return {"storage": {"volumeClaim": {"size": "10Gi", **claim}}}


@dataclass(frozen=True, slots=True)
class Case:
    """One object, and the words by which it is refused; none if it is taken."""

    kind: str
    spec: Document
    refusal: str = ""
    name: str = "one"


@dataclass(frozen=True, slots=True)
class Change:
    """One object that becomes another."""

    kind: str
    before: Document
    after: Document
    refusal: str = ""


TAKEN: dict[str, Case] = {
    "fork-least": Case(FORK, fork()),
    "fork-of-a-fork": Case(FORK, {"parent": {"kind": "Fork", "name": "two"}}),
    "fork-of-a-log-of-its-name": Case(FORK, {"parent": {"kind": "Log", "name": "one"}}),
    "fork-promotable": Case(FORK, fork(promotable=True)),
    "fork-severed-at-the-tail": Case(FORK, fork(type="Severed")),
    "fork-severed-at-a-position": Case(FORK, fork(type="Severed", at={"position": 0})),
    "fork-severed-at-a-time": Case(FORK, fork(type="Severed", at={"time": "2026-03-01T12:00:00Z"})),
    "fork-severed-with-its-parent": Case(FORK, fork(type="Severed", onParentDelete="Cascade")),
    "fork-exclusive": Case(FORK, fork(isolation="Exclusive")),
    "fork-with-times": Case(FORK, fork(ttl="1h30m", ttlAfterFinished="0s")),
    "fork-without-a-value": Case(FORK, fork(ttl=None)),
    "fork-protected-and-kept": Case(FORK, fork(protected=True, deletionPolicy="Retain")),
    "fork-with-a-quota": Case(FORK, fork(quota={"appendRecordsPerSecond": 1})),
    "fork-adopted": Case(FORK, fork(adopt=True, forkName="What_If.2")),
    "fork-promoted-at-once": Case(FORK, fork(promotable=True, state="Promoted")),
    "promotion-wished-before-its-gate": Case(
        FORK, judged("Gate", gate=gate()) | {"state": "Promoted"}
    ),
    "promotion-wished-before-its-approval": Case(FORK, judged("Approval") | {"state": "Promoted"}),
    "fork-judged-by-a-job": Case(FORK, judged("Gate", gate={**gate(), "onFailure": "Hold"})),
    "fork-to-be-approved": Case(FORK, judged("Approval")),
    "fork-judged-and-approved": Case(FORK, judged("Approval", gate=gate()) | {"approved": True}),
    "gate-with-what-jobs-have": Case(
        FORK,
        judged(
            "Gate",
            gate=gate(
                metadata={"labels": {"team": "prices"}},
                spec={
                    "backoffLimit": 3,
                    "completionMode": "Indexed",
                    "template": {
                        "metadata": {"annotations": {"a": "b"}},
                        "spec": {
                            "restartPolicy": "OnFailure",
                            "serviceAccountName": "judge",
                            "containers": [{**CONTAINER, "env": [{"name": "A", "value": "b"}]}],
                        },
                    },
                },
            ),
        ),
    ),
    "name-of-48-characters": Case(FORK, fork(), name="n" * 48),
    "log-least": Case(LOG, {}),
    "log-with-all": Case(
        LOG,
        {
            "engine": "bolt",
            "logName": "Orders.2026",
            "adopt": True,
            "retention": {"age": "7d", "records": 1},
            "quota": {"readBytesPerSecond": 10**12, "burstMilliseconds": 1},
            "deletionPolicy": "Delete",
        },
    ),
    "pool-least": Case(POOL, pool()),
    "pool-of-one": Case(POOL, pool(min=1, max=1, spare=0, replicas=1)),
    "pool-with-all": Case(
        POOL,
        pool(
            imagePullPolicy="Never",
            imagePullSecrets=["a", "b"],
            resources={"requests": {"cpu": 1, "memory": "1.5Gi"}, "limits": {"x.org/y": "1e3"}},
            drainSeconds=1,
            config={"configMap": "settings", "secrets": ["s3"]},
            topology={"zones": False, "hosts": "Required"},
            nodeSelector={"disk": "nvme"},
            tolerations=[{"key": "a", "operator": "Exists", "effect": "NoExecute"}],
            podLabels={"team": "logs"},
            podAnnotations={"example.org/a": "b"},
            diskCache={"size": "10Gi"},
            scaling={"appendBytesPerBroker": 1},
            rollout={"policy": "OnDelete"},
        ),
    ),
    "sequencers-least": Case(SEQUENCERS, sequencers()),
    "one-sequencer-for-a-trial": Case(
        SEQUENCERS, sequencers(members=1, storage={"ephemeral": True})
    ),
    "sequencers-with-all": Case(
        SEQUENCERS,
        sequencers(
            members=5,
            rules={"tOrdMicroseconds": 5_000, "window": 50, "freeWill": True, "copiesMin": 2},
            storage={
                "volumeClaim": {"size": "1Gi", "storageClassName": "fast"},
                "onDelete": "Delete",
            },
            drainSeconds=5,
            tlsSecret="tls",
            topology={"hosts": "Required"},
            podLabels={"team": "logs"},
            rollout={"policy": "Paused"},
        ),
    ),
    "shards-least": Case(SHARDS, shards()),
    "shards-of-a-trial": Case(SHARDS, shards(storage={"ephemeral": True}, durability="memory")),
    "shards-none": Case(SHARDS, shards(shards=0)),
    "shards-with-all": Case(
        SHARDS,
        shards(shards=100, copies=3, quota=50, leaving={"waitFor": "Nothing"}, drainSeconds=5),
    ),
}

REFUSED: dict[str, Case] = {
    "fork-of-nothing": Case(FORK, {}, "spec.parent: Required value"),
    "fork-of-a-nameless": Case(FORK, {"parent": {}}, "spec.parent.name: Required value"),
    "fork-of-a-pool": Case(
        FORK, {"parent": {"kind": "BrokerPool", "name": "a"}}, 'supported values: "Log", "Fork"'
    ),
    "fork-of-itself": Case(
        FORK, {"parent": {"kind": "Fork", "name": "one"}}, "a fork can't be its own parent"
    ),
    "fork-of-no-type": Case(FORK, fork(type="Copy"), '"Continuous", "Severed"'),
    "continuous-at": Case(FORK, fork(at={"position": 1}), "at is for severed forks"),
    "at-nothing": Case(FORK, fork(type="Severed", at={}), "at is either a position or a time"),
    "at-both": Case(
        FORK,
        fork(type="Severed", at={"position": 1, "time": "2026-03-01T12:00:00Z"}),
        "at is either a position or a time",
    ),
    "at-before-the-beginning": Case(
        FORK, fork(type="Severed", at={"position": -1}), "should be greater than or equal to 0"
    ),
    "at-no-time": Case(FORK, fork(type="Severed", at={"time": "noon"}), "date-time"),
    "severed-promotable": Case(
        FORK, fork(type="Severed", promotable=True), "only a continuous fork can be promotable"
    ),
    "continuous-with-its-parent": Case(
        FORK, fork(onParentDelete="Cascade"), "onParentDelete is for severed forks"
    ),
    "promoted-though-not-promotable": Case(
        FORK, fork(state="Promoted"), "only a promotable fork can be promoted"
    ),
    "state-unknown": Case(FORK, fork(state="Squashed"), '"Active", "Promoted"'),
    "approval-of-what-is-not-promotable": Case(
        FORK, fork(promotion={"policy": "Approval"}), "needs a promotable fork"
    ),
    "gate-with-a-nameless-variable": Case(
        FORK,
        judged("Gate", gate=pod(containers=[{**CONTAINER, "env": [{"value": "x"}]}])),
        "env[0].name: Required value",
    ),
    "gate-with-a-word-for-containers": Case(
        FORK,
        judged("Gate", gate=pod(containers=[CONTAINER], initContainers="x")),
        "initContainers in body must be of type array",
    ),
    "gate-with-a-word-for-volumes": Case(
        FORK,
        judged("Gate", gate=pod(containers=[CONTAINER], volumes="x")),
        "volumes in body must be of type array",
    ),
    "gate-without-a-job": Case(FORK, judged("Gate"), "Gate needs promotion.gate.jobTemplate"),
    "job-without-a-gate": Case(
        FORK, judged("Manual", gate=gate()), "promotion.gate has no part in policy Manual"
    ),
    "policy-unknown": Case(FORK, judged("Never"), '"Manual", "Gate", "Approval"'),
    "approved-though-manual": Case(
        FORK, judged("Manual") | {"approved": True}, "approved is for promotion.policy Approval"
    ),
    "job-without-a-spec": Case(
        FORK, judged("Gate", gate=gate(metadata={})), "jobTemplate.spec: Required value"
    ),
    "job-without-a-template": Case(
        FORK, judged("Gate", gate=gate(spec={})), "jobTemplate.spec.template: Required value"
    ),
    "job-without-containers": Case(
        FORK, judged("Gate", gate=pod(volumes=[])), "spec.containers: Required value"
    ),
    "job-of-no-containers": Case(
        FORK, judged("Gate", gate=pod(containers=[])), "should have at least 1 items"
    ),
    "job-without-an-image": Case(
        FORK, judged("Gate", gate=pod(containers=[{"name": "a"}])), "image: Required value"
    ),
    "job-that-never-ends": Case(
        FORK,
        judged("Gate", gate=pod(containers=[CONTAINER], restartPolicy="Always")),
        '"Never", "OnFailure"',
    ),
    "failure-unknown": Case(
        FORK, judged("Gate", gate={**gate(), "onFailure": "Ignore"}), '"Squash", "Hold"'
    ),
    "ttl-without-a-unit": Case(FORK, fork(ttl="90"), "spec.ttl in body should match"),
    "ttl-of-weeks": Case(FORK, fork(ttlAfterFinished="2w"), "spec.ttlAfterFinished in body should"),
    "ttl-of-nothing": Case(FORK, fork(ttl="0h0s"), "ttl must be longer than nothing"),
    "isolation-unknown": Case(FORK, fork(isolation="Shared"), '"Pooled", "Exclusive"'),
    "deletion-unknown": Case(FORK, fork(deletionPolicy="Delete"), '"Squash", "Retain"'),
    "fork-name-with-a-slash": Case(
        FORK, fork(forkName="a/b"), "spec.forkName in body should match"
    ),
    "fork-name-with-the-separator": Case(
        FORK, fork(forkName="a--b"), "'--' separates the parts of a fork's full name"
    ),
    "fork-name-too-long": Case(FORK, fork(forkName="n" * 201), "may not be more than 200"),
    "quota-of-nothing": Case(
        FORK, fork(quota={"appendBytesPerSecond": 0}), "should be greater than or equal to 1"
    ),
    "quota-beyond-measure": Case(
        FORK, fork(quota={"readBytesPerSecond": 10**12 + 1}), "should be less than or equal to"
    ),
    "quota-of-a-part": Case(
        FORK, fork(quota={"readBytesPerSecond": 0.5}), "must be of type integer"
    ),
    "protected-perhaps": Case(FORK, fork(protected="yes"), "must be of type boolean"),
    "fork-name-of-49": Case(FORK, fork(), "the name is too long", "n" * 49),
    "name-with-a-dot": Case(FORK, fork(), "use letters, digits and '-', no dots", "a.b"),
    "name-with-the-separator": Case(FORK, fork(), "'--' separates the parts", "a--b"),
    "log-name-of-49": Case(LOG, {}, "the name is too long", "n" * 49),
    "log-with-the-separator": Case(LOG, {}, "'--' separates the parts", "a--b"),
    "log-with-a-dot": Case(LOG, {}, "no dots", "a.b"),
    "log-name-in-the-service": Case(LOG, {"logName": "a--b"}, "'--' separates the parts"),
    "engine-unknown": Case(LOG, {"engine": "kafka"}, '"bolt", "belfast", "erwin"'),
    "log-deletion-unknown": Case(LOG, {"deletionPolicy": "Squash"}, '"Retain", "Delete"'),
    "retention-of-nothing": Case(LOG, {"retention": {"records": 0}}, "greater than or equal to 1"),
    "retention-of-years": Case(LOG, {"retention": {"age": "1y"}}, "retention.age in body should"),
    "burst-too-long": Case(LOG, {"quota": {"burstMilliseconds": 60_001}}, "less than or equal to"),
    "pool-without-an-image": Case(POOL, {}, "spec.image: Required value"),
    "pool-upside-down": Case(POOL, pool(min=3, max=2), "min is above max"),
    "pool-of-none": Case(POOL, pool(min=0), "should be greater than or equal to 1"),
    "pool-of-too-many": Case(POOL, pool(max=1_001), "should be less than or equal to 1000"),
    "pool-all-spare": Case(POOL, pool(spare=9), "spare is above max"),
    "pool-scaled-too-far": Case(POOL, pool(replicas=9), "replicas lies between min and max"),
    "pool-scaled-too-low": Case(POOL, pool(replicas=0), "replicas lies between min and max"),
    "pool-that-begins-with-a-digit": Case(POOL, pool(), "let it begin with a letter", "1st"),
    "pool-with-a-dot": Case(POOL, pool(), "no dots", "a.b"),
    "pool-name-of-49": Case(POOL, pool(), "the name is too long", "n" * 49),
    "pull-sometimes": Case(POOL, pool(imagePullPolicy="Sometimes"), '"IfNotPresent", "Never"'),
    "a-secret-twice": Case(POOL, pool(imagePullSecrets=["a", "a"]), "Duplicate value"),
    "our-label": Case(
        POOL, pool(podLabels={"anabranch.dev/role": "a"}), "labels and annotations of anabranch.dev"
    ),
    "our-annotation": Case(
        POOL, pool(podAnnotations={"anabranch.dev/a": "b"}), "take another prefix"
    ),
    "memory-of-no-size": Case(
        POOL, pool(resources={"limits": {"memory": "lots"}}), "limits.memory in body should match"
    ),
    "effect-unknown": Case(POOL, pool(tolerations=[{"effect": "Never"}]), '"NoSchedule"'),
    "cache-of-nothing": Case(POOL, pool(diskCache={"size": "0"}), "size is an amount above 0"),
    "cache-of-no-size": Case(POOL, pool(diskCache={"size": "big"}), "size is an amount above 0"),
    "drain-for-ever": Case(POOL, pool(drainSeconds=3_601), "less than or equal to 3600"),
    "hosts-unknown": Case(POOL, pool(topology={"hosts": "Any"}), '"Preferred", "Required"'),
    "sequencers-without-storage": Case(
        SEQUENCERS, {"image": "anabranch"}, "spec.storage: Required value"
    ),
    "two-sequencers": Case(SEQUENCERS, sequencers(members=2), "members is odd: take 1, 3 or 5"),
    "seven-sequencers": Case(SEQUENCERS, sequencers(members=7), "less than or equal to 5"),
    "sequencers-that-forget": Case(
        SEQUENCERS, sequencers(storage={"ephemeral": True}), "several members need a volumeClaim"
    ),
    "failed-before-silent": Case(
        SEQUENCERS,
        sequencers(rules={"failIntervals": 20}),
        "failIntervals is above silentIntervals",
    ),
    "intervals-of-nothing": Case(
        SEQUENCERS, sequencers(rules={"tOrdMicroseconds": 0}), "greater than or equal to 100"
    ),
    "windows-of-nothing": Case(
        SEQUENCERS, sequencers(rules={"window": 0}), "greater than or equal to 1"
    ),
    "sequencers-with-our-label": Case(
        SEQUENCERS, sequencers(podLabels={"anabranch.dev/role": "a"}), "take another prefix"
    ),
    "sequencers-that-begin-with-a-digit": Case(
        SEQUENCERS, sequencers(), "let it begin with a letter", "1st"
    ),
    "stored-nowhere": Case(SHARDS, shards(storage={}), "storage is either ephemeral or"),
    "stored-twice": Case(
        SHARDS, shards(storage={"ephemeral": True, **VOLUME}), "storage is either ephemeral or"
    ),
    "volume-of-nothing": Case(SHARDS, shards(**volume(size="0")), "size is an amount above 0"),
    "volume-of-no-size": Case(SHARDS, shards(**volume(size="big")), "size is an amount above 0"),
    "shards-of-nobody": Case(
        SHARDS, {"image": "anabranch", "storage": VOLUME}, "spec.sequencers: Required value"
    ),
    "shards-of-no-name": Case(SHARDS, shards(sequencers="A"), "spec.sequencers in body should"),
    "four-copies": Case(SHARDS, shards(copies=4), "less than or equal to 3"),
    "no-copies": Case(SHARDS, shards(copies=0), "greater than or equal to 1"),
    "too-many-shards": Case(SHARDS, shards(shards=101), "less than or equal to 100"),
    "leaving-unknown": Case(SHARDS, shards(leaving={"waitFor": "Forever"}), '"Trimmed", "Nothing"'),
    "durable-perhaps": Case(SHARDS, shards(durability="disk"), '"fsync", "memory"'),
    "shards-name-of-49": Case(SHARDS, shards(), "the name is too long", "n" * 49),
}

SEVERED = fork(type="Severed", at={"position": 1})
PROMOTED = fork(promotable=True, state="Promoted")
APPROVED = judged("Approval") | {"approved": True}

CHANGED: dict[str, Change] = {
    "promoted": Change(FORK, fork(promotable=True), PROMOTED),
    "approved": Change(FORK, judged("Approval"), APPROVED),
    "by-hand-after-all": Change(FORK, judged("Gate", gate=gate()), PROMOTED),
    "another-quota": Change(FORK, fork(), fork(quota={"readBytesPerSecond": 5})),
    "protected": Change(FORK, fork(), fork(protected=True, ttlAfterFinished="1h")),
    "adopted-after-all": Change(FORK, fork(), fork(adopt=True, deletionPolicy="Retain")),
    "log-trimmed": Change(LOG, {}, {"retention": {"records": 5}, "deletionPolicy": "Delete"}),
    "sequencers-moved": Change(
        SEQUENCERS, sequencers(), sequencers(image="newer", rules={"window": 50})
    ),
    "shards-moved": Change(
        SHARDS, shards(), shards(image="newer", shards=7, leaving={"waitFor": "Nothing"}, quota=3)
    ),
    "volume-grown": Change(SHARDS, shards(), shards(**volume(size="11Gi"))),
    "volume-shrunk": Change(SHARDS, shards(), shards(**volume(size="9Gi")), "can't shrink"),
    "volume-of-another-class": Change(
        SHARDS,
        shards(**volume(storageClassName="a")),
        shards(**volume(storageClassName="b")),
        "storageClassName can't be changed",
    ),
    "onto-nodes": Change(
        SHARDS, shards(), shards(storage={"ephemeral": True}), "storage can't move between"
    ),
    "more-sequencers": Change(
        SEQUENCERS, sequencers(), sequencers(members=5), "members can't be changed"
    ),
    "other-sequencers": Change(
        SHARDS, shards(), shards(sequencers="others"), "sequencers can't be changed"
    ),
    "more-copies": Change(SHARDS, shards(), shards(copies=3), "copies can't be changed"),
    "pool-moved": Change(POOL, pool(), pool(image="newer", min=1, max=5, replicas=5)),
    "another-parent": Change(
        FORK, fork(), {"parent": {"name": "other"}}, "parent can't be changed: make another Fork"
    ),
    "a-parent-of-another-kind": Change(
        FORK, fork(), {"parent": {"kind": "Fork", "name": "orders"}}, "parent can't be changed"
    ),
    "severed-afterwards": Change(FORK, fork(), fork(type="Severed"), "type can't be changed"),
    "promotable-afterwards": Change(
        FORK, fork(), fork(promotable=True), "promotable can't be changed"
    ),
    "alone-afterwards": Change(
        FORK, fork(), fork(isolation="Exclusive"), "isolation can't be changed"
    ),
    "cascading-afterwards": Change(
        FORK,
        fork(type="Severed"),
        fork(type="Severed", onParentDelete="Cascade"),
        "onParentDelete can't be changed",
    ),
    "moved": Change(FORK, SEVERED, fork(type="Severed", at={"position": 2}), "at can't be changed"),
    "moved-to-the-tail": Change(FORK, SEVERED, fork(type="Severed"), "at can't be changed"),
    "moved-from-the-tail": Change(FORK, fork(type="Severed"), SEVERED, "at can't be changed"),
    "renamed": Change(FORK, fork(), fork(forkName="b"), "forkName can't be changed"),
    "living-longer": Change(FORK, fork(ttl="1h"), fork(ttl="2h"), "ttl can't be changed"),
    "demoted": Change(FORK, PROMOTED, fork(promotable=True), "a promotion can't be taken back"),
    "disapproved": Change(FORK, APPROVED, judged("Approval"), "an approval can't be taken back"),
    "another-engine": Change(
        LOG, {}, {"engine": "erwin"}, "engine can't be changed: make another Log"
    ),
    "another-log": Change(LOG, {"logName": "a"}, {"logName": "b"}, "logName can't be changed"),
    "no-other-log": Change(LOG, {"logName": "a"}, {}, "logName can't be changed"),
}
