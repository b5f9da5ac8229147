"""Where pods of Belfast keep what they have acknowledged."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from anabranch_operator.api.common import Shape
from anabranch_operator.api.pods import Name


class OnDelete(StrEnum):
    RETAIN = "Retain"
    """A resource of the same name finds them again."""
    DELETE = "Delete"
    """And all that is in them."""


class VolumeClaim(Shape, frozen=True, kw_only=True):
    """A volume of each pod's own, which outlives the pod."""

    size: Annotated[str, Meta(max_length=32)]
    """How much it holds, as a Kubernetes quantity; it may grow if its class lets it."""
    storage_class_name: Name | None = None
    """Which kind of volume; the cluster's default if it is left out."""


class Storage(Shape, frozen=True, kw_only=True):
    """Where pods keep what they have acknowledged."""

    ephemeral: bool = False
    """On the node's disk, gone with the pod: for trials."""
    volume_claim: VolumeClaim | None = None
    """In a volume of each pod's own."""
    group: Annotated[int, Meta(ge=0, le=(1 << 31) - 1)] = 65_532
    """The group that the files belong to; 0: the platform chooses."""
    on_delete: OnDelete = OnDelete.RETAIN
    """What becomes of the volumes when the resource is deleted."""
