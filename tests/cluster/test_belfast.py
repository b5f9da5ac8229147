"""A Belfast log beside the release: shards come and go, replicas and sequencers are replaced and
killed, while somebody appends; what was acknowledged is read back, each at its position.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.account import Account
from tests.cluster.site import RELEASE, Document, Site, kill, until
from tests.kubernetes.image import images

from anabranch_operator.api import names

PROGRAM = Path(__file__).with_name("foretelling.py")
POD, LOG = "ticking", "ticks"
SERVICES = next(each.reference for each in images())
TOKENS = f"{RELEASE}-belfast"
_FOLDER, _SECRETS = "/programs", "/secrets"


class Ticks:
    """The client that appends all the time, and the shards it appends to."""

    def __init__(self, site: Site) -> None:
        self._site = site
        text = PROGRAM.read_text(encoding="utf-8")
        files = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": POD}}
        site.apply({**files, "data": {PROGRAM.name: text}}, self._program(POD, ["python3", _RUN]))
        until(lambda: self.acknowledged() or None, "the first append is acknowledged")

    def acknowledged(self) -> dict[int, int]:
        """Each record's number, and its position."""
        pod = self._site.get("pods", POD)
        if pod["status"]["phase"] == "Pending":
            return {}
        said = self._site.kubectl("logs", POD)
        assert pod["status"]["phase"] == "Running", said[-2_000:]
        return {int(number): int(place) for number, place in map(str.split, said.splitlines())}

    def go_on(self) -> None:
        before = len(self.acknowledged())
        until(lambda: len(self.acknowledged()) > before, "appends go on")

    def ask(self, *command: str) -> str:
        """The command line's answer, from a pod of its own."""
        name = f"ask-{len(command)}-{command[0]}"
        self._site.apply(self._program(name, ["anabranch", "belfast", *command]))

        def ended() -> str | None:
            phase = self._site.get("pods", name)["status"].get("phase")
            if phase not in ("Succeeded", "Failed"):
                return None
            said = self._site.kubectl("logs", name)
            assert phase == "Succeeded", said[-2_000:]
            return said + "\n"

        said = until(ended, f"{name} ends")
        self._site.delete("pods", name)
        self._site.until_gone("pods", name)
        return said

    def end(self) -> dict[int, int]:
        found = self.acknowledged()
        self._site.kubectl("delete", "pod", POD, "--wait=true")
        return found

    def _program(self, name: str, command: list[str]) -> Document:
        site = self._site
        endpoint = site.get("sequencersets", LOG)["status"]["endpoint"]
        query = f"token_file={_SECRETS}/ANABRANCH_TOKEN&ca={names.RUN_DIR}/ca.crt"
        pod = site.program(name, command, RELEASE, "default")
        (container,) = pod["spec"]["containers"]
        container["env"] = [{"name": "ANABRANCH_URL", "value": f"{endpoint}?{query}"}]
        volumes = [
            ({"name": "programs", "configMap": {"name": POD}}, _FOLDER),
            ({"name": "secrets", "secret": {"secretName": TOKENS}}, _SECRETS),
        ]
        for volume, path in volumes:
            pod["spec"]["volumes"].append(volume)
            container["volumeMounts"].append({"name": volume["name"], "mountPath": path})
        return pod


_RUN = f"{_FOLDER}/{PROGRAM.name}"


@pytest.fixture(scope="module")
def ticks(site: Site, account: Account) -> Iterator[Ticks]:
    """Three sequencers, two shards of two replicas, and somebody who appends."""
    spec = {
        "image": SERVICES,
        "imagePullPolicy": "Never",
        "config": {"secrets": [TOKENS]},
        "tlsSecret": f"{RELEASE}-broker-tls",
        "storage": {"volumeClaim": {"size": "1Gi"}, "onDelete": "Delete"},
    }
    # One node with two cores holds them all.
    rules = {"tOrdMicroseconds": 20_000, "silentIntervals": 100, "failIntervals": 1_000}
    with account.step("a SequencerSet and a ShardGroup are applied, until all have seats"):
        site.apply(
            _declared(names.SEQUENCERS, {**spec, "rules": rules}),
            _declared(names.SHARDS, {**spec, "sequencers": LOG}),
        )
        site.until_is("sequencersets", LOG, "Ready")
        site.until_is("shardgroups", LOG, "Ready")
    yield Ticks(site)
    site.patch("shardgroups", LOG, shards=0, leaving={"waitFor": "Nothing"})
    until(lambda: not _pods(site, names.SHARD), "all shards have left")
    until(lambda: not _status(site).get("seated"), "nobody has a seat")
    for plural in ("shardgroups", "sequencersets"):
        site.delete(plural, LOG)


def test_shards_are_added_and_have_their_seats(site: Site, account: Account, ticks: Ticks) -> None:
    with account.step("kubectl scale of two shards to three, until it has a seat"):
        site.kubectl("scale", f"shardgroup/{LOG}", "--replicas=3")
        site.until_is("shardgroups", LOG, "Joining", status="False")
    assert _status(site)["seated"] == 3
    ticks.go_on()


def test_replicas_are_rolled_and_nobody_fails(site: Site, account: Account, ticks: Ticks) -> None:
    view = site.get("sequencersets", LOG)["status"]["view"]
    before = _pods(site, names.SHARD)
    with account.step("roll-out of six replicas"):
        site.patch("shardgroups", LOG, podAnnotations={"rolled": "once"})
        site.until_is("shardgroups", LOG, "Progressing", status="False")
    assert not before.items() & _pods(site, names.SHARD).items()
    ticks.go_on()
    assert site.get("sequencersets", LOG)["status"]["view"] == view


def test_sequencers_are_rolled_the_leader_last(site: Site, account: Account, ticks: Ticks) -> None:
    leader, before = (
        site.get("sequencersets", LOG)["status"]["leader"],
        _pods(site, names.SEQUENCER),
    )
    with account.step("roll-out of three sequencers"):
        site.patch("sequencersets", LOG, podAnnotations={"rolled": "once"})
        site.until_is("sequencersets", LOG, "Progressing", status="False")
    made = {
        pod["metadata"]["name"]: pod["metadata"]["creationTimestamp"]
        for pod in _all(site, names.SEQUENCER)
    }
    assert not before.items() & _pods(site, names.SEQUENCER).items()
    assert made[leader] == max(made.values())
    ticks.go_on()


def test_a_primary_that_is_killed_is_succeeded(site: Site, account: Account, ticks: Ticks) -> None:
    (seat, *_) = _status(site)["seats"]
    with account.step("kill -9 of a shard's primary"):
        kill(site.get("pods", seat["primary"]))
        ticks.go_on()
    until(lambda: _seat(site, seat["name"])["epoch"] > seat["epoch"], "it was arranged anew")
    until(lambda: _seat(site, seat["name"])["copies"] == 2, "both replicas count again")


def test_a_shard_that_is_killed_as_a_whole_comes_back(
    site: Site, account: Account, ticks: Ticks
) -> None:
    with account.step("kill -9 of both replicas of a shard"):
        for copy in range(2):
            kill(site.get("pods", f"{LOG}-1-{copy}"))
        ticks.go_on()
    site.until_is("shardgroups", LOG, "Ready")
    assert _seat(site, f"{LOG}-1")["standing"] == "Seated"


def test_a_shard_leaves_and_goes_when_it_is_trimmed(
    site: Site, account: Account, ticks: Ticks
) -> None:
    with account.step("kubectl scale of three shards to two, until the third has left"):
        site.kubectl("scale", f"shardgroup/{LOG}", "--replicas=2")
        until(lambda: _seat(site, f"{LOG}-2")["standing"] == "Left", "it has left")
    ticks.go_on()
    assert f"{LOG}-2-0" in _pods(site, names.SHARD), "its records are kept"
    found = ticks.end()
    numbers = list(found)
    assert numbers == list(range(len(numbers)))
    places = list(found.values())
    assert len(set(places)) == len(places)
    told = ticks.ask(
        "tail", "--from", "0", "--confirmed", "--records", str(len(found)), "-o", "json"
    )
    read = [json.loads(line) for line in told.splitlines() if line]
    at = {each["position"]: each["value"] for each in read if "position" in each}
    # A number that was asked twice may be there twice; those are among the last ones read.
    kept = {place: number for number, place in found.items() if place in at}
    assert len(kept) >= len(found) * 9 // 10
    assert all(at[place] == f"tick {number}" for place, number in kept.items())
    with account.step("trim of the log, until the third shard's pods and volumes are gone"):
        confirmed = site.get("sequencersets", LOG)["status"]["confirmed"]
        ticks.ask("trim", str(confirmed))
        for copy in range(2):
            site.until_gone("pods", f"{LOG}-2-{copy}")
            site.until_gone("persistentvolumeclaims", f"data-{LOG}-2-{copy}")


def _declared(kind: str, spec: Document) -> Document:
    meta = {"apiVersion": names.API_VERSION, "kind": kind, "metadata": {"name": LOG}}
    return {**meta, "spec": spec}


def _status(site: Site) -> Document:
    return site.get("shardgroups", LOG).get("status", {})


def _seat(site: Site, shard: str) -> Document:
    return next(each for each in _status(site)["seats"] if each["name"] == shard)


def _all(site: Site, role: str) -> list[Document]:
    return site.all("pods", **{names.ROLE: role})


def _pods(site: Site, role: str) -> dict[str, str]:
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in _all(site, role)}
