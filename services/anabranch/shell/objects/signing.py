"""Where whoever has no keys of a store can fetch ranges of its objects, or create objects."""

from collections.abc import Sequence

from anabranch.core.errors import NotFetchable
from anabranch.core.machine import PutTarget
from anabranch.core.types import Milliseconds
from anabranch.ports import NewObject, ObjectStore, SigningStore


async def signed(
    store: ObjectStore, ranges: Sequence[tuple[str, int, int]], valid_ms: Milliseconds
) -> Sequence[str]:
    """A URL for each range: name, offset, length. Raises NotFetchable if there is no way."""
    if not isinstance(store, SigningStore):
        raise NotFetchable("it keeps them in memory")
    return await store.sign(ranges, valid_ms)


async def signed_puts(
    store: ObjectStore, contents: Sequence[NewObject], valid_ms: Milliseconds
) -> Sequence[PutTarget]:
    """How each of these objects can be created. Raises NotFetchable if there is no way."""
    if not isinstance(store, SigningStore):
        raise NotFetchable("it keeps them in memory")
    return await store.sign_put(contents, valid_ms)
