"""The page of metrics against what is served."""

import re
from pathlib import Path
from typing import Any

NAME = r"(?:anabranch|process)_\w+"


def test_the_page_lists_every_metric_and_no_other(shared: Any, root: Path) -> None:
    served = re.findall(rf"^({NAME}) ", shared.client.get("/metrics").text, re.MULTILINE)
    page = (root / "docs" / "reference" / "metrics.md").read_text()
    table = re.findall(rf"^\| `({NAME})` \|", page.partition("## What to watch")[0], re.MULTILINE)
    process = re.findall(r"`(process_\w+)`", page)
    assert len(table) > 30
    assert sorted(table + process) == sorted(served)
