"""Bolt logs with lazy appends and their sequencers that are taken as they stand, and those that are
refused.
"""

from typing import Any

from tests.operator.declared import LOG, SEQUENCERS, SHARDS, VOLUME, Case, Change, Document

PODS: Document = {"image": "anabranch", "storage": VOLUME}
LOCAL: Document = {"image": "anabranch", "storage": {"ephemeral": True}}


def made(**sequencers: Any) -> Document:
    """Its sequencers are made by the operator."""
    return {"appends": "Lazy", "sequencers": {"template": {**PODS, **sequencers}}}


def sequencers(**spec: Any) -> Document:
    return {**PODS, "engine": "lazy", **spec}


TAKEN: dict[str, Case] = {
    "lazy-of-sequencers-to-be-made": Case(LOG, made()),
    "lazy-of-two-sequencers": Case(LOG, made(members=2)),
    "lazy-in-memory": Case(LOG, made(**LOCAL, durability="memory", acceptLoss=True)),
    "lazy-of-named-sequencers": Case(
        LOG, {"appends": "Lazy", "sequencers": {"name": "b"}}, name="b"
    ),
    "lazy-with-retention-and-quotas": Case(
        LOG,
        {
            **made(),
            "retention": {"age": "1d"},
            "quota": {"appendRecordsPerSecond": 1, "readBytesPerSecond": 1},
        },
    ),
    "lazy-sequencers": Case(SEQUENCERS, sequencers(members=2)),
    "lazy-sequencers-in-memory": Case(
        SEQUENCERS, sequencers(**LOCAL, durability="memory", acceptLoss=True)
    ),
    "direct": Case(LOG, {"appends": "Direct"}),
}

REFUSED: dict[str, Case] = {
    "lazy-without-sequencers": Case(
        LOG, {"appends": "Lazy"}, "appends Lazy need sequencers: name a SequencerSet"
    ),
    "direct-with-sequencers": Case(
        LOG, {"sequencers": {"template": PODS}}, "and for appends Lazy: leave it out"
    ),
    "lazy-with-shards": Case(
        LOG, {**made(), "shards": {"names": ["a"]}}, "shards is for engines belfast and erwin"
    ),
    "lazy-of-another-engine": Case(
        LOG,
        {
            "engine": "erwin",
            "appends": "Lazy",
            "sequencers": {"template": PODS},
            "shards": {"template": PODS},
        },
        "appends is for engine bolt",
    ),
    "lazy-called-otherwise-than-its-sequencers": Case(
        LOG,
        {"appends": "Lazy", "sequencers": {"name": "a"}},
        "call the Log like its set",
        name="b",
    ),
    "lazy-on-nodes-disks": Case(LOG, made(**LOCAL), "several members need a volumeClaim"),
    "lazy-with-a-mode": Case(LOG, made(mode="m"), "mode is for engine erwin"),
    "lazy-with-configurations": Case(
        LOG, made(configurations="Etcd"), "configurations is for engine erwin"
    ),
    "lazy-on-disks-that-accepts-loss": Case(
        LOG, made(acceptLoss=True), "lazy appends with durability memory"
    ),
    "lazy-sequencers-with-a-mode": Case(
        SEQUENCERS, sequencers(mode="st"), "mode is for engine erwin"
    ),
    "lazy-shards": Case(
        SHARDS, {**PODS, "engine": "lazy", "sequencers": "orders"}, "a lazy front has no shards"
    ),
}

CHANGED: dict[str, Change] = {
    "direct-to-lazy": Change(LOG, {}, made()),
    "lazy-to-direct": Change(LOG, made(), {"appends": "Direct"}),
    "lazy-to-direct-with-its-template": Change(
        LOG, made(), {**made(), "appends": "Direct"}, "for appends Lazy: leave it out"
    ),
    "another-image-of-lazy-sequencers": Change(LOG, made(), made(image="newer")),
    "more-lazy-sequencers": Change(
        LOG, made(members=1), made(members=2), "members can't be changed"
    ),
    "lazy-from-disks-to-memory": Change(
        LOG, made(), made(durability="memory"), "durability can't be changed"
    ),
    "lazy-to-erwin": Change(
        SEQUENCERS, sequencers(), sequencers(engine="erwin"), "engine can't be changed"
    ),
}
