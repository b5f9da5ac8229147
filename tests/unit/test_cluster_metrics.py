"""The page's section on a cluster's processes, against what they count."""

import re
from pathlib import Path

from anabranch.apps.pods.metadata import MemberGauges
from anabranch.core.bolt.group import Member
from anabranch.core.limits import Limits
from anabranch.shell.authority.warden import AuthorityCounters
from anabranch.shell.metrics import render
from anabranch.shell.otlp import SpanCounters
from anabranch.shell.peerline import PeerCounters, PeerGauges


def test_the_page_lists_what_is_counted_and_no_more(root: Path) -> None:
    member = MemberGauges(Member("c", Limits()), following=True, journaled=7)
    counters = {"peers": PeerCounters(), "spans": SpanCounters(), "authority": AuthorityCounters()}
    text = render(counters, {"peers": PeerGauges(), "member": member}).decode()
    served = re.findall(r"^(anabranch_\w+)[ {]", text, re.MULTILINE)
    page = (root / "docs" / "reference" / "metrics.md").read_text()
    section = page.partition("## Cluster")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| `(anabranch_\w+)` \|", section, re.MULTILINE)
    assert sorted(listed) == sorted(set(served))


def test_a_member_lags_by_what_is_journaled_and_not_followed() -> None:
    gauges = MemberGauges(Member("c", Limits()), following=True, journaled=7)
    assert (gauges.index, gauges.journaled, gauges.leading, gauges.following) == (0, 7, 0, 1)
