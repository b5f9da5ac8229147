"""Logs of engine erwin and their parts that are taken as they stand, and those that are refused."""

from typing import Any

from tests.operator.declared import LOG, SEQUENCERS, SHARDS, VOLUME, Case, Change, Document

PODS: Document = {"image": "anabranch", "storage": VOLUME}
BOX: Document = {"url": "kafka://kafka-1:9093,[::1]:9093/clicks", "accessSecret": "kafka"}
LOCAL: Document = {"image": "anabranch", "storage": {"ephemeral": True}}


def made(sequencers: Document | None = None, **shards: Any) -> Document:
    """Served by parts that the operator makes."""
    template = {**PODS, **(sequencers or {})}
    of = {"count": 2, "template": {**PODS, **shards}}
    return {"engine": "erwin", "sequencers": {"template": template}, "shards": of}


def sequencers(**spec: Any) -> Document:
    return {**PODS, "engine": "erwin", **spec}


def shards(**spec: Any) -> Document:
    return {**PODS, "engine": "erwin", "sequencers": "orders", **spec}


TAKEN: dict[str, Case] = {
    "erwin-of-parts-to-be-made": Case(LOG, made()),
    "erwin-with-a-quota": Case(LOG, {**made(), "quota": {"appendRecordsPerSecond": 1}}),
    "erwin-of-two-sequencers": Case(LOG, made({"members": 2, "mode": "st"})),
    "erwin-of-named-parts": Case(
        LOG,
        {"engine": "erwin", "sequencers": {"name": "b"}, "shards": {"names": ["b"]}},
        name="b",
    ),
    "erwin-sequencers": Case(SEQUENCERS, sequencers(members=2, configurations="Journal")),
    "erwin-sequencers-in-memory": Case(
        SEQUENCERS, sequencers(**LOCAL, durability="memory", acceptLoss=True)
    ),
    "erwin-over-black-boxes": Case(LOG, made({"mode": "m"}, copies=1, blackBox=BOX)),
    "erwin-shards-over-black-boxes": Case(SHARDS, shards(copies=1, blackBox=BOX)),
    "erwin-shards": Case(SHARDS, shards(durability="memory")),
}

REFUSED: dict[str, Case] = {
    "erwin-without-shards": Case(
        LOG,
        {"engine": "erwin", "sequencers": {"name": "a"}},
        "engines belfast and erwin need shards",
    ),
    "erwin-with-a-quota-for-reads": Case(
        LOG,
        {**made(), "quota": {"readBytesPerSecond": 1}},
        "reads are limited for engine bolt alone",
    ),
    "erwin-on-nodes-disks": Case(LOG, made(LOCAL), "several members need a volumeClaim"),
    "erwin-with-a-demand": Case(LOG, made(quota=5), "quota of shards is for engine belfast"),
    "erwin-that-gives-up-records": Case(
        LOG, made(leaving={"waitFor": "Nothing"}), "set leaving.waitFor to Trimmed"
    ),
    "erwin-sequencers-that-accept-loss": Case(
        SEQUENCERS,
        sequencers(acceptLoss=True),
        "acceptLoss is for engine erwin and lazy appends with",
    ),
    "erwin-shards-that-give-up-records": Case(
        SHARDS, shards(leaving={"waitFor": "Nothing"}), "set leaving.waitFor to Trimmed"
    ),
    "erwin-of-mode-st-over-black-boxes": Case(
        LOG,
        made({"mode": "st"}, copies=1, blackBox=BOX),
        "would wait for the blackBox: take mode m",
    ),
    "erwin-copies-over-black-boxes": Case(
        SHARDS, shards(copies=2, blackBox=BOX), "a blackBox replicates the records itself"
    ),
    "erwin-over-what-is-no-black-box": Case(
        SHARDS, shards(copies=1, blackBox={"url": "s3://bucket:1/x"}), "blackBox.url"
    ),
    "erwin-with-a-password-in-sight": Case(
        SHARDS, shards(copies=1, blackBox={"url": "kafka://me:word@h:1/x"}), "blackBox.url"
    ),
    "belfast-over-black-boxes": Case(
        SHARDS,
        {**PODS, "sequencers": "orders", "copies": 1, "blackBox": BOX},
        "blackBox is for engine erwin",
    ),
    "belfast-with-a-mode": Case(SEQUENCERS, {**PODS, "mode": "st"}, "mode is for engine erwin"),
    "belfast-in-memory": Case(
        SEQUENCERS, {**PODS, "durability": "memory"}, "durability of sequencers is for engine erwin"
    ),
    "belfast-with-configurations": Case(
        SEQUENCERS, {**PODS, "configurations": "Etcd"}, "configurations is for engine erwin"
    ),
}

CHANGED: dict[str, Change] = {
    "more-erwin-shards": Change(
        LOG, made(), {**made(), "shards": {**made()["shards"], "count": 3}}
    ),
    "erwin-to-belfast": Change(
        SEQUENCERS, sequencers(), {**PODS, "engine": "belfast"}, "engine can't be changed"
    ),
    "another-mode": Change(
        SEQUENCERS, sequencers(mode="m"), sequencers(mode="st"), "mode can't be changed"
    ),
    "another-durability": Change(
        SEQUENCERS, sequencers(), sequencers(durability="memory"), "durability can't be changed"
    ),
    "another-black-box": Change(
        SHARDS,
        shards(copies=1, blackBox=BOX),
        shards(copies=1, blackBox={**BOX, "url": "kafka://kafka-1:9093/votes"}),
        "the records stay where they are",
    ),
    "a-black-box-taken-away": Change(
        SHARDS,
        shards(copies=1, blackBox=BOX),
        shards(copies=1),
        "the records stay where they are",
    ),
    "another-user-of-a-black-box": Change(
        SHARDS,
        shards(copies=1, blackBox=BOX),
        shards(copies=1, blackBox={**BOX, "accessSecret": "other"}),
    ),
    "another-place-of-configurations": Change(
        SEQUENCERS,
        sequencers(configurations="Etcd"),
        sequencers(configurations="Journal"),
        "configurations can't be changed",
    ),
}
