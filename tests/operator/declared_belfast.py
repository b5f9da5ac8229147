"""Logs of engine belfast that are taken as they stand, and those that are refused, and why."""

from typing import Any

from tests.operator.declared import LOG, VOLUME, Case, Change, Document

PODS: Document = {"image": "anabranch", "storage": VOLUME}


def named(**spec: Any) -> Document:
    """Served by parts that somebody else has made."""
    parts: Document = {"sequencers": {"name": "orders"}, "shards": {"names": ["orders", "late"]}}
    return {"engine": "belfast", **parts, **spec}


def made(**shards: Any) -> Document:
    """Served by parts that the operator makes."""
    of = {"count": 2, "template": PODS, **shards}
    return {"engine": "belfast", "sequencers": {"template": PODS}, "shards": of}


TAKEN: dict[str, Case] = {
    "log-of-named-parts": Case(LOG, named(), name="orders"),
    "log-of-parts-to-be-made": Case(LOG, made()),
    "belfast-with-a-quota": Case(LOG, named(quota={"appendRecordsPerSecond": 1}), name="orders"),
    "log-of-mixed-parts": Case(LOG, {**named(), "shards": made()["shards"]}, name="orders"),
    "log-that-goes-with-its-parts": Case(LOG, {**made(), "deletionPolicy": "Delete"}),
}

REFUSED: dict[str, Case] = {
    "belfast-without-sequencers": Case(
        LOG, {"engine": "belfast", "shards": {"names": ["a"]}}, "and appends Lazy need sequencers"
    ),
    "belfast-without-shards": Case(
        LOG, {"engine": "belfast", "sequencers": {"name": "a"}}, "belfast and erwin need shards"
    ),
    "log-called-unlike-its-sequencers": Case(
        LOG, named(), "call the Log like its set", name="secret"
    ),
    "bolt-with-sequencers": Case(
        LOG, {"sequencers": {"name": "a"}}, "sequencers is for engines belfast and erwin"
    ),
    "bolt-with-shards": Case(LOG, {"shards": {"names": ["a"]}}, "shards is for engines belfast"),
    "belfast-with-a-quota-of-reads": Case(
        LOG, named(quota={"readBytesPerSecond": 1}), "reads are limited for engine bolt alone"
    ),
    "belfast-with-a-retention": Case(
        LOG, named(retention={"records": 5}), "retention is for engine bolt"
    ),
    "sequencers-named-and-made": Case(
        LOG,
        named(sequencers={"name": "a", "template": PODS}),
        "sequencers is either a name or a template",
    ),
    "sequencers-neither": Case(LOG, named(sequencers={}), "either a name or a template"),
    "shards-named-and-made": Case(
        LOG, made(names=["a"]), "shards is either names or a template: give one of them"
    ),
    "shards-named-twice": Case(LOG, named(shards={"names": ["a", "a"]}), "Duplicate value"),
    "shards-named-and-counted": Case(
        LOG, named(shards={"names": ["a"], "count": 2}), "count is for shards that are made"
    ),
    "an-even-group": Case(
        LOG,
        {**made(), "sequencers": {"template": {**PODS, "members": 2}}},
        "members is odd: take 1, 3 or 5",
    ),
}

CHANGED: dict[str, Change] = {
    "more-shards": Change(LOG, made(), made(count=3)),
    "another-image": Change(LOG, made(), made(template={**PODS, "image": "newer"})),
    "more-groups": Change(
        LOG,
        named(sequencers={"name": "more-groups"}),
        named(sequencers={"name": "more-groups"}, shards={"names": ["orders", "late", "more"]}),
    ),
    "belfast-to-bolt": Change(
        LOG,
        named(sequencers={"name": "belfast-to-bolt"}),
        {},
        "engine can't be changed: make another Log",
    ),
    "another-set": Change(
        LOG,
        named(sequencers={"name": "another-set"}),
        named(sequencers={"name": "b"}),
        "SequencerSet of a log can't be changed",
    ),
    "made-to-named": Change(
        LOG,
        made(),
        {**made(), "shards": {"names": ["one"]}},
        "shards can't change between names and a template",
    ),
    "more-sequencers-of-a-log": Change(
        LOG,
        made(),
        {**made(), "sequencers": {"template": {**PODS, "members": 5}}},
        "members can't be changed",
    ),
}
