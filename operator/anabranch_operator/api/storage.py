"""Where pods of Belfast keep what they have acknowledged."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from anabranch_operator.api.common import Shape
from anabranch_operator.api.pods import Name


class OnDelete(StrEnum):
    RETAIN = "Retain"
    """Keep the volumes. A resource of the same name finds its data again."""
    DELETE = "Delete"
    """Delete the volumes and all data in them."""


class VolumeClaim(Shape, frozen=True, kw_only=True):
    """A volume for each pod, which outlives the pod."""

    size: Annotated[str, Meta(max_length=32)]
    """Size of each volume, as a Kubernetes quantity such as `100Gi`. It can grow later if the
    storage class allows it, and never shrink.
    """
    storage_class_name: Name | None = None
    """Name of the StorageClass; the cluster's default is used if this is left out. It can't be
    changed later.
    """


class Storage(Shape, frozen=True, kw_only=True):
    """Where pods keep the records and decisions that they have acknowledged."""

    ephemeral: bool = False
    """Keep the data on the node's disk, where it is lost with the pod. For trials, and for
    sequencers of engine erwin or a lazy front with `durability: memory`, which need no volumes.
    """
    volume_claim: VolumeClaim | None = None
    """Keep the data in a volume for each pod."""
    group: Annotated[int, Meta(ge=0, le=(1 << 31) - 1)] = 65_532
    """Number of the group that owns the files (`fsGroup`); 0 leaves the choice to the platform, as
    on OpenShift.
    """
    on_delete: OnDelete = OnDelete.RETAIN
    """Whether the volumes are kept when the resource is deleted."""
