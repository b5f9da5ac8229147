"""The client that appends all the time, and what came of it."""

from pathlib import Path

from tests.cluster.account import Account
from tests.cluster.site import RELEASE, Document, Site, until

PROGRAM = Path(__file__).with_name("appending.py")
POD = "load"

_FOLDER = "/programs"


class Load:
    def __init__(self, site: Site, account: Account) -> None:
        self._site = site
        self._account = account
        self.appended = 0
        site.account("load", "append", "read")
        text = PROGRAM.read_text(encoding="utf-8")
        metadata = {"name": POD}
        data = {PROGRAM.name: text}
        files = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        site.apply(files, self._pod())
        until(lambda: self.acknowledged() or None, "the first append is acknowledged")

    def acknowledged(self) -> dict[int, int]:
        """Each record's number, and when it was acknowledged."""
        pod = self._site.get("pods", POD)
        phase = pod["status"]["phase"]
        if phase == "Pending":
            return {}
        said = self._site.kubectl("logs", POD)
        assert phase == "Running", said[-2_000:]
        return dict(_numbers(line) for line in said.splitlines())

    def goes_on(self) -> None:
        """Another append is acknowledged."""
        before = len(self.acknowledged())
        until(lambda: len(self.acknowledged()) > before, "appends go on")

    def end(self) -> None:
        """No more is appended: what was acknowledged is there, each once, in the order in which it
        was appended.
        """
        found = self.acknowledged()
        self._site.kubectl("delete", "pod", POD, "--wait=true")
        read = self._site.run("anabranch read orders --format raw --timeout 120s", account="load")
        assert read.code == 0, read.said[-2_000:]
        words = [line.split() for line in read.said.splitlines()]
        numbers = [int(each[1]) for each in words if each[0] == "load"]
        assert list(found) == list(range(len(found)))
        # What was on its way when it ended may be there too.
        assert numbers[: len(found)] == list(found)
        assert numbers == list(range(len(numbers)))
        self.appended = len(found)
        self._account.heed(list(found.values()))

    def _pod(self) -> Document:
        command = ["python3", f"{_FOLDER}/{PROGRAM.name}", "orders"]
        pod = self._site.program(POD, command, RELEASE, "load")
        volume = {"name": "programs", "configMap": {"name": POD}}
        mount = {"name": "programs", "mountPath": _FOLDER}
        pod["spec"]["volumes"].append(volume)
        pod["spec"]["containers"][0]["volumeMounts"].append(mount)
        return pod


def _numbers(line: str) -> tuple[int, int]:
    words = line.split()
    assert len(words) == 2, f"the appending client says: {line}"
    return int(words[0]), int(words[1])
