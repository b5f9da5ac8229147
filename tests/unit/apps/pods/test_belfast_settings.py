"""How sequencers and shards are set up, and what is refused by its name."""

from typing import Any

import pytest

from anabranch.apps.pods.belfast_settings import (
    Durability,
    NodeSettings,
    SequencerSettings,
    ShardSettings,
    load,
)
from anabranch.core.errors import BadRequest

NODE = {"cluster": "c", "data": "/d"}
SHARD = {**NODE, "shard": "s", "sequencers": "q:1"}
GUARDED = {"host": "0.0.0.0", "token": "t", "peer_token": "p", "address": "a:1"}


@pytest.mark.parametrize(
    ("kind", "flags", "complaint"),
    [
        (SequencerSettings, {"cluster": "c"}, "data: it must be given: by --data"),
        (SequencerSettings, {"data": "/d"}, "cluster: it must be given"),
        (SequencerSettings, {**NODE, "cluster": ""}, "cluster: it is empty: name the cluster"),
        (SequencerSettings, {**NODE, "members": "a"}, "address 'a': write it as host:port"),
        (SequencerSettings, {**NODE, "address": "a"}, "address 'a': write it as host:port"),
        (SequencerSettings, {**NODE, "address": "a:1", "members": "b:1"}, "a:1 is not among them"),
        (SequencerSettings, {**NODE, "port": "70000"}, "port = 70000"),
        (SequencerSettings, {**NODE, "probe_port": "-2"}, "probe_port = -2"),
        (SequencerSettings, {**NODE, "rules_window": "0"}, "rules_window = 0"),
        (SequencerSettings, {**NODE, "shard": "s"}, "there is no such setting"),
        (SequencerSettings, {**NODE, "durability": "perhaps"}, "durability"),
        (ShardSettings, NODE, "must be given"),
        (ShardSettings, {**SHARD, "sequencers": ""}, "sequencers: it is empty"),
        (ShardSettings, {**SHARD, "sequencers": ","}, "sequencers: it is empty"),
        (ShardSettings, {**SHARD, "sequencers": "q"}, "address 'q': write it as host:port"),
        (ShardSettings, {**SHARD, "replicas": "r"}, "address 'r': write it as host:port"),
        (ShardSettings, {**SHARD, "address": "a:1", "replicas": "b:1"}, "a:1 is not among them"),
        (ShardSettings, {**SHARD, "shard": ""}, "shard: it is empty: name the shard"),
        (ShardSettings, {**SHARD, "quota": "-1"}, "quota = -1: it can't be negative"),
        (ShardSettings, {**SHARD, "cache_bytes": "-1"}, "cache_bytes = -1"),
        (ShardSettings, {**SHARD, "host": "0.0.0.0"}, "set token and peer_token"),
        (ShardSettings, {**SHARD, **GUARDED, "peer_token": None}, "set token and peer_token"),
        (ShardSettings, {**SHARD, **GUARDED, "token": None}, "set token and peer_token"),
        (ShardSettings, {**SHARD, **GUARDED, "address": None}, "nobody can dial 0.0.0.0"),
        (ShardSettings, {**SHARD, "token": ""}, "token: it is empty"),
        (ShardSettings, {**SHARD, "peer_token": "a\x00"}, "can't be printed"),
        (ShardSettings, {**SHARD, "token": "t", "tokens_file": "/f"}, "not both"),
    ],
)
def test_what_can_not_be_is_refused(
    kind: type[NodeSettings], flags: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(BadRequest) as refused:
        load(kind, flags, {})
    assert complaint in refused.value.message


def test_lists_are_written_with_commas_and_blanks_do_not_count() -> None:
    found = load(SequencerSettings, {**NODE, "members": " a:1, b:2 ,,c:3"}, {})
    assert found.members == ("a:1", "b:2", "c:3")
    assert load(ShardSettings, {**SHARD, "replicas": ""}, {}).replicas == ()


def test_one_environment_serves_both_kinds() -> None:
    environment = {
        "ANABRANCH_CLUSTER": "c",
        "ANABRANCH_DATA": "/d",
        "ANABRANCH_SHARD": "s",
        "ANABRANCH_SEQUENCERS": "q:1,q:2",
        "ANABRANCH_MEMBERS": "m:1",
        "ANABRANCH_DURABILITY": "memory",
        "ANABRANCH_RULES_WINDOW": "7",
    }
    sequencer = load(SequencerSettings, {}, environment)
    shard = load(ShardSettings, {}, environment)
    assert (sequencer.members, sequencer.rules.window) == (("m:1",), 7)
    assert (shard.sequencers, shard.shard) == (("q:1", "q:2"), "s")
    assert sequencer.durability is shard.durability is Durability.MEMORY


@pytest.mark.parametrize(
    "more", [{}, {"tokens_file": "/t", "token": None}, {"auth_mode": "kubernetes", "token": None}]
)
def test_others_may_reach_what_is_guarded(more: dict[str, Any]) -> None:
    assert load(ShardSettings, {**SHARD, **GUARDED, **more}, {}).host == "0.0.0.0"
