"""How sequencers and shards are set up, and what is refused by its name."""

from typing import Any

import pytest

from anabranch.apps.pods.log_settings import (
    Durability,
    NodeSettings,
    SequencerSettings,
    ShardSettings,
    load,
)
from anabranch.core.errors import BadRequest

NODE = {"cluster": "c", "data": "/d"}
SHARD = {**NODE, "shard": "s", "sequencers": "q:1"}
FRONT = {"engine": "lazy", "service": "anabranch://here", "log_id": 3}
ERWIN = {**SHARD, "engine": "erwin"}
BOX = "kafka://h:1/t-0"
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
        (SequencerSettings, {**NODE, "log_quota_file": "/q"}, "log_quota_file: it says nothing"),
        (ShardSettings, {**SHARD, "black_box": BOX}, "black_box: it says nothing to the engine"),
        (ShardSettings, {**ERWIN, "black_box": "s3://h:1/t"}, "it is kafka://HOST:PORT/TOPIC"),
        (ShardSettings, {**ERWIN, "black_box": BOX, "replicas": "r:1,r:2"}, "name one replica"),
        (ShardSettings, {**SHARD, "token": "t"}, "peer_token: clients must show who they are"),
        (SequencerSettings, {**NODE, "tokens_file": "/f"}, "set peer_token or peer_tokens_file"),
        (SequencerSettings, {**NODE, "auth_mode": "kubernetes"}, "set peer_token"),
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


def test_settings_of_the_other_engine_are_refused() -> None:
    refused: list[tuple[type[NodeSettings], dict[str, Any]]] = [
        (SequencerSettings, {"engine": "erwin", "epochs": True}),
        (SequencerSettings, {"engine": "erwin", "rules_t_ord_us": 5_000}),
        (SequencerSettings, {"mode": "st"}),
        (SequencerSettings, {"configurations": "etcd"}),
        (SequencerSettings, {"engine": "erwin", "accept_loss": True}),
        (SequencerSettings, {"engine": "erwin", "service": "anabranch://here"}),
        (SequencerSettings, {"engine": "belfast", "log_id": 3}),
        (SequencerSettings, {**FRONT, "mode": "st"}),
        (SequencerSettings, {**FRONT, "configurations": "etcd"}),
        (ShardSettings, {"engine": "erwin", "quota": 3}),
        (ShardSettings, {"engine": "erwin", "log_quota_file": "q"}),
    ]
    shard = {"shard": "s", "sequencers": "a:1"}
    for kind, flags in refused:
        more = shard if kind is ShardSettings else {}
        with pytest.raises(BadRequest) as found:
            load(kind, {"cluster": "c", "data": "d", **more, **flags}, {})
        assert list(flags)[-1].partition("_t_")[0] in found.value.message


def test_an_erwin_log_is_set_up_by_the_same_flags() -> None:
    found = load(
        SequencerSettings,
        {
            "cluster": "c",
            "data": "d",
            "engine": "erwin",
            "mode": "st",
            "durability": "memory",
            "configurations": "etcd",
            "etcd_endpoints": "e:2379",
            "accept_loss": True,
        },
        {},
    )
    assert (found.engine, found.mode, found.configurations) == ("erwin", "st", "etcd")


@pytest.mark.parametrize(
    ("kind", "flags", "complaint"),
    [
        (SequencerSettings, {"engine": "lazy", "log_id": 3}, "name the service"),
        (SequencerSettings, {"engine": "lazy", "service": "anabranch://here"}, "log's id"),
        (SequencerSettings, {**FRONT, "service": "belfast://here/c"}, "no service"),
        (ShardSettings, {**SHARD, "engine": "lazy"}, "no shards"),
    ],
)
def test_a_lazy_front_is_before_one_log_of_a_service(
    kind: type[NodeSettings], flags: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(BadRequest, match=complaint):
        load(kind, {**NODE, **flags}, {})
