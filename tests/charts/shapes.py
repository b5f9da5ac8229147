"""The types of the chart's values, with their bounds."""

from typing import Annotated, Any

from msgspec import Meta

Name = Annotated[str, Meta(pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$", max_length=253)]
"""Of a Kubernetes object; empty: there is none."""
Quantity = Annotated[str, Meta(pattern=r"^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$")]
JavaMemory = Annotated[str, Meta(pattern=r"^[1-9][0-9]*[kmgt]$")]
"""As Java's flags and Spark's settings have it."""
Address = Annotated[str, Meta(pattern=r"^(https?://)?[A-Za-z0-9.\[\]:_-]+:[0-9]+$")]
Url = Annotated[str, Meta(pattern=r"^(https?://[^/]+)?$")]
Labels = dict[str, str]
Count = Annotated[int, Meta(ge=1, le=1_000)]
Replicas = Annotated[int, Meta(ge=1, le=9)]
Free = dict[str, Any]
"""Kubernetes' own: the API server checks it."""
