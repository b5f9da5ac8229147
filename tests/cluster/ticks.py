"""A Belfast log beside the release, and who appends to it and reads it ahead of its order."""

from pathlib import Path
from typing import Any

import yaml
from tests.cluster.site import RELEASE, Document, Site, until

from anabranch_operator.api import names

LOG = "ticks"
"""The set's name and the group's, as the example has it."""
EXAMPLE = Path("examples") / "kubernetes" / "belfast-trial.yaml"
APPENDER, READER = "appending-ticks", "speculating"
TOKENS = f"{RELEASE}-belfast"
SETTINGS = f"{LOG}-settings"

_PROGRAMS = {
    APPENDER: Path(__file__).with_name("foretelling.py"),
    READER: Path(__file__).with_name("speculating.py"),
}
_FOLDER, _SECRETS = "/programs", "/secrets"
_LITTLE: Document = {"requests": {"cpu": "50m", "memory": "64Mi"}}
_PATIENT = {"ANABRANCH_CONSENSUS_HEARTBEAT_MS": "500", "ANABRANCH_CONSENSUS_ELECTION_MS": "5000"}


def declared(site: Site, root: Path) -> list[Document]:
    """The example's; terms are kept in etcd, and two cores have other work too."""
    found = list(yaml.safe_load_all((root / EXAMPLE).read_text(encoding="utf-8")))
    for each in found:
        if each["kind"] == names.SEQUENCERS:
            each["spec"]["config"]["configMap"] = SETTINGS
            each["spec"]["etcdTlsSecret"] = f"{RELEASE}-peer-tls"
    told = {**site.get("configmaps", f"{RELEASE}-belfast")["data"], **_PATIENT}
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": SETTINGS}}
    return [{**settings, "data": told}, *found]


_TERMS = """\
import os, sys
from anabranch.apps.pods.log_settings import SequencerSettings, load
from anabranch.shell.etcd.api.client import EtcdClient
from anabranch.shell.etcd.group.epochs import latest
cluster = sys.argv[1]
settings = load(SequencerSettings, {"cluster": cluster, "data": "none"}, os.environ)
print(latest(EtcdClient(settings.etcd), cluster).term)
"""


class Ticks:
    """Somebody appends to it all the time, and somebody reads all of it."""

    def __init__(self, site: Site) -> None:
        self._site = site
        data = {path.name: path.read_text(encoding="utf-8") for path in _PROGRAMS.values()}
        files = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": LOG}, "data": data}
        pods = [
            self._program(name, ["python3", f"{_FOLDER}/{path.name}"])
            for name, path in _PROGRAMS.items()
        ]
        site.apply(files, *pods)
        until(lambda: self._last() is not None, "the first append is acknowledged")
        until(self.read, "the first record is read")

    def acknowledged(self) -> dict[int, tuple[int, int]]:
        """Each record's number: its position, and when it was acknowledged."""
        lines = (list(map(int, line.split())) for line in self._said(APPENDER))
        return {number: (position, at) for number, position, at in lines}

    def read(self) -> dict[int, str]:
        """What is certain, by its position."""
        found: dict[int, str] = {}
        for line in self._said(READER):
            place, _, value = line.partition(" ")
            if place != "failed":
                assert int(place) not in found, f"position {place} is read twice"
                found[int(place)] = value
        assert list(found) == sorted(found), "it is read in another order"
        return found

    def failures(self) -> int:
        """How often the reader was told to forget what it had read ahead of the order."""
        return sum(line.startswith("failed ") for line in self._said(READER))

    def go_on(self) -> None:
        """Another append is acknowledged that begins after this does."""
        before = self._last()
        assert before is not None
        # The next one may have been on its way.
        until(lambda: (self._last() or 0) > before + 1, "appends go on")

    def term(self) -> int:
        """The last that etcd was told of."""
        cluster = f"{self._site.namespace}.{LOG}"
        pod = self._program("terms", ["python3", "-c", _TERMS, cluster])
        (container,) = pod["spec"]["containers"]
        container["envFrom"] = [{"configMapRef": {"name": SETTINGS}}]
        secret = {"name": "etcd", "secret": {"secretName": f"{RELEASE}-peer-tls"}}
        pod["spec"]["volumes"].append(secret)
        mount = {"name": "etcd", "mountPath": f"{names.RUN_DIR}/etcd"}
        container["volumeMounts"].append(mount)
        return int(self._ended(pod))

    def ask(self, *command: str) -> str:
        """The command line's answer."""
        return self._ended(self._program(f"ask-{command[0]}", ["anabranch", "belfast", *command]))

    def _ended(self, pod: Document) -> str:
        """What a pod said that is gone when this returns."""
        site, name = self._site, pod["metadata"]["name"]
        site.apply(pod)

        def ended() -> bool:
            phase = site.get("pods", name)["status"].get("phase")
            assert phase != "Failed", site.kubectl("logs", name)[-2_000:]
            return phase == "Succeeded"

        until(ended, f"{name} ends")
        said = site.kubectl("logs", name)
        site.delete("pods", name)
        site.until_gone("pods", name)
        return said

    def end_appends(self) -> dict[int, tuple[int, int]]:
        """All that were acknowledged."""
        found = self.acknowledged()
        self._site.kubectl("delete", "pod", APPENDER, "--wait=true")
        return found

    def end(self) -> None:
        self._site.kubectl("delete", "pod", READER, "--wait=true")
        self._site.kubectl("delete", "configmap", LOG, SETTINGS)

    def _last(self) -> int | None:
        lines = self._said(APPENDER, "--tail=1")
        return int(lines[0].split()[0]) if lines else None

    def _said(self, name: str, *options: str) -> list[str]:
        pod = self._site.get("pods", name)
        phase = pod["status"]["phase"]
        statuses: list[Any] = pod["status"].get("containerStatuses", [])
        if phase == "Pending" or not any("running" in each["state"] for each in statuses):
            assert phase != "Failed", self._site.kubectl("logs", name)[-2_000:]
            return []
        said = self._site.kubectl("logs", name, *options)
        assert "Traceback" not in said, said[-2_000:]
        return said.splitlines()

    def _program(self, name: str, command: list[str]) -> Document:
        site = self._site
        endpoint = site.get("sequencersets", LOG)["status"]["endpoint"]
        query = f"token_file={_SECRETS}/ANABRANCH_TOKEN&ca={names.RUN_DIR}/ca.crt"
        pod = site.program(name, command, RELEASE, "default")
        (container,) = pod["spec"]["containers"]
        container["env"] = [{"name": "ANABRANCH_URL", "value": f"{endpoint}?{query}"}]
        container["resources"] = _LITTLE
        volumes = [
            ({"name": "programs", "configMap": {"name": LOG}}, _FOLDER),
            ({"name": "secrets", "secret": {"secretName": TOKENS}}, _SECRETS),
        ]
        for volume, path in volumes:
            pod["spec"]["volumes"].append(volume)
            container["volumeMounts"].append({"name": volume["name"], "mountPath": path})
        return pod
