"""The page's section on the object store, against what is counted."""

import re
from pathlib import Path

from anabranch.core.health import Standing
from anabranch.core.usage import Usage
from anabranch.shell.objects.s3.meter import S3Counters
from anabranch.shell.objects.s3.store import StoreGauges
from anabranch.shell.telemetry.metrics import Bill, render


def test_the_page_lists_what_is_counted_and_no_more(root: Path) -> None:
    gauges = StoreGauges(Standing.HEALTHY, 0)
    text = render({"s3": S3Counters()}, {"s3": gauges}, Bill(Usage(), lambda _: 0.0)).decode()
    served = re.findall(r"^(anabranch_\w+)[ {]", text, re.MULTILINE)
    page = (root / "docs" / "reference" / "metrics.md").read_text()
    section = page.partition("## Object store")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| `(anabranch_\w+)` \|", section, re.MULTILINE)
    assert sorted(listed) == sorted(set(served))
