"""The pods of a log of sequencers and shards beside the release."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.cluster.site import Document, Site, until

from anabranch_operator.api import names

WITHIN_S = 1_200.0
"""As `site.WITHIN_S`, for what is done to many pods one after the other."""


class LogPods:
    """The pods of the SequencerSet and the ShardGroup that have a log's name."""

    def __init__(self, site: Site, log: str) -> None:
        self._site, self._log = site, log

    @property
    def members(self) -> Document:
        return self._site.get("sequencersets", self._log).get("status", {})

    @property
    def group(self) -> Document:
        return self._site.get("shardgroups", self._log).get("status", {})

    def seat(self, shard: str) -> Document:
        return next(each for each in self.group["seats"] if each["name"] == shard)

    def pods(self, role: str) -> dict[str, Document]:
        found = self._site.all("pods", **{names.ROLE: role})
        return {each["metadata"]["name"]: each["metadata"] for each in found}

    def uids(self, role: str) -> set[str]:
        return {each["uid"] for each in self.pods(role).values()}

    def until_whole(self) -> None:
        """Every pod is as declared, every sequencer and every replica counts."""

        def look() -> bool:
            # What is declared before what is told of it: never a status of another spec.
            wanted = self._site.get("shardgroups", self._log)
            found, members = wanted.get("status", {}), self.members
            shards, copies = wanted["spec"]["shards"], wanted["spec"]["copies"]
            current = found.get("observedGeneration") == wanted["metadata"]["generation"]
            seats = [each for each in found.get("seats", ()) if each["standing"] == "Seated"]
            every = {found.get("pods"), found.get("updated")} == {shards * copies}
            told = {members.get(each) for each in ("members", "ready", "updated")} == {3}
            whole = len(seats) == shards and all(each["copies"] == copies for each in seats)
            return current and every and told and whole

        until(look, "every sequencer and every replica counts", WITHIN_S)

    @contextmanager
    def away(self, *pods: str) -> Iterator[None]:
        """They are ended at once, and nobody makes them anew before this is over."""
        paused = f"{names.PAUSED}=true"
        self._site.kubectl("annotate", f"shardgroup/{self._log}", paused)
        self._site.until_is("shardgroups", self._log, "Paused")
        self._site.kubectl("delete", "pod", "--now", "--wait=true", *pods)
        yield
        self._site.kubectl("annotate", f"shardgroup/{self._log}", f"{names.PAUSED}-")
