"""Lists, to compare with what watches told: metadata only, one kind after the other."""

from collections.abc import Callable

from anabranch.core.types import Nanoseconds
from anabranch_operator.kube.client import Client
from anabranch_operator.kube.lease import boottime
from anabranch_operator.kube.selectors import Watched
from anabranch_operator.plan.election.watch_health import Roll, Sighting
from anabranch_operator.plan.engine.objects import Ref


class Sweep:
    """Compares one watch with a list; who is blind raises."""

    def __init__(
        self,
        client: Client,
        watched: Watched,
        roll: Roll,
        gone: Callable[[Ref, str], None],
        now: Callable[[], Nanoseconds] = boottime,
    ) -> None:
        self.watched = watched
        self.roll = roll
        self._client = client
        self._gone = gone
        self._now = now

    async def run(self) -> int:
        """How many were gone."""
        watched, found = self.watched, dict[Ref, Sighting]()
        version = 0
        pages = self._client.pages(
            watched.kind, watched.namespace, labels=watched.labels, fields=watched.fields
        )
        async for page in pages:
            # Of several pages all are as of the first one's version.
            version = version or int(page.version)
            for item in page.items:
                meta = item["metadata"]
                ref = Ref(watched.kind, meta.get("namespace", ""), meta["name"])
                found[ref] = Sighting(meta["uid"], int(meta["resourceVersion"]))
        gone = self.roll.compare(found, version, self._now())
        for ref, uid in gone:
            self._gone(ref, uid)
        return len(gone)
