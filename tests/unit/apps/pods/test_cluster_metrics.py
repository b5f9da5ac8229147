"""The page's sections on processes of a cluster, and of a Belfast log, against what they count."""

import re
from pathlib import Path
from typing import Any

from anabranch.apps.belfast.machines import SequencerGauges, ShardGauges
from anabranch.apps.pods.metadata import MemberGauges
from anabranch.core.belfast.ledger.rules import Rules
from anabranch.core.belfast.sequencer.sequencer import Sequencer
from anabranch.core.belfast.shard.config import ShardConfig
from anabranch.core.belfast.shard.shard import Shard
from anabranch.core.bolt.metadata.compactor_gauges import CompactorGauges
from anabranch.core.bolt.metadata.member import Member
from anabranch.core.bolt.metadata.plan_gauges import PlanGauges
from anabranch.core.bolt.metadata.writer_gauges import WriterGauges
from anabranch.core.limits import Limits
from anabranch.shell.authority.reviewer import AuthorityCounters
from anabranch.shell.etcd.api.space import Fill
from anabranch.shell.peers.connection import PeerCounters, PeerGauges
from anabranch.shell.telemetry.metrics import render
from anabranch.shell.telemetry.otlp import SpanCounters


def test_the_page_lists_what_is_counted_and_no_more(root: Path) -> None:
    member = MemberGauges(Member("c", Limits()), following=True, journaled=7)
    counters = {"peers": PeerCounters(), "spans": SpanCounters(), "authority": AuthorityCounters()}
    gauges = {"peers": PeerGauges(), "member": member, "etcd": Fill()}
    assert listed(root, "Cluster") == served(counters, gauges)


def test_the_page_lists_what_is_shown_of_plans_compactors_and_writers(root: Path) -> None:
    replica = Member("c", Limits()).state.replica
    assert listed(root, "Compactors") == served({}, {"compactors": CompactorGauges(replica)})
    assert listed(root, "Scan plans") == served({}, {"plans": PlanGauges(replica, 0)})
    assert listed(root, "Writers") == served({}, {"writers": WriterGauges(replica)})


def test_the_page_lists_what_a_sequencer_counts(root: Path) -> None:
    sequencer = Sequencer("s", ("s",), Rules(), Limits())
    gauges = {"sequencer": SequencerGauges(sequencer)}
    assert listed(root, "Sequencer") == served({"sequencer": sequencer.counters}, gauges)


def test_the_page_lists_what_a_shard_counts(root: Path) -> None:
    config = ShardConfig(shard="a", node="n", replicas=("n",), sequencers=("s",))
    shard = Shard(config, Limits())
    gauges = {"shard": ShardGauges(shard)}
    assert listed(root, "Shard") == served({"shard": shard.counters}, gauges)


def listed(root: Path, section: str) -> list[str]:
    page = (root / "docs" / "reference" / "metrics.md").read_text()
    part = page.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return sorted(re.findall(r"^\| `(anabranch_\w+)` \|", part, re.MULTILINE))


def served(counters: dict[str, Any], gauges: dict[str, Any]) -> list[str]:
    text = render(counters, gauges).decode()
    return sorted(set(re.findall(r"^(anabranch_\w+)[ {]", text, re.MULTILINE)))


def test_a_member_lags_by_what_is_journaled_and_not_followed() -> None:
    gauges = MemberGauges(Member("c", Limits()), following=True, journaled=7)
    assert (gauges.index, gauges.journaled, gauges.leading, gauges.following) == (0, 7, 0, 1)
