"""The page of metrics against what is served."""

import re
from pathlib import Path
from typing import Any

NAME = r"(?:anabranch|process)_\w+"


def test_the_page_lists_every_metric_and_no_other(embedded: Any, root: Path) -> None:
    embedded.client.get("/readyz")
    text = embedded.client.get("/metrics").text
    served = list(dict.fromkeys(re.findall(rf"^({NAME})[ {{]", text, re.MULTILINE)))
    page = (root / "docs" / "reference" / "metrics.md").read_text()
    table = re.findall(rf"^\| `({NAME})` \|", page.partition("## What to watch")[0], re.MULTILINE)
    process = re.findall(r"`(process_\w+)`", page)
    assert len(table) > 30
    assert sorted(table + process) == sorted(served)


def test_requests_are_counted_by_route_and_status(served: Any) -> None:
    served.create("orders", "a")
    for _ in range(3):
        served.client.get("/v1/logs/none")
    served.client.get("/nowhere")
    served.client.get("/v1/logs", headers={"Origin": "https://example.org"})
    text = served.client.get("/metrics").text
    for line in (
        'requests_total{method="POST",route="/v1/logs",status="201"} 1.0',
        'requests_total{method="GET",route="/v1/logs/{log}",status="404"} 3.0',
        'requests_total{method="GET",route="none",status="404"} 1.0',
        'requests_total{method="GET",route="none",status="403"} 1.0',
        'answer_seconds_count{route="/v1/logs/{log}"} 3.0',
        'answer_seconds_bucket{le="+Inf",route="/v1/logs/{log}"} 3.0',
        "open 1.0",
    ):
        assert f"anabranch_http_{line}" in text
