"""The charts as Helm renders them, with the values that are tried."""

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from tests.kubernetes.binaries import program

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "anabranch"
CRDS = ROOT / "charts" / "anabranch-crds"
MATRIX = tuple(sorted(path.stem for path in (CHART / "ci").glob("*.yaml")))
"""By the names of their files: a user's examples, and corners of what may be said."""
RELEASE, NAMESPACE = "demo", "logs"
_ENDS_S = 300

Document = dict[str, Any]


class Refused(Exception):
    """What Helm said instead."""


class Helm:
    def __init__(self) -> None:
        self._program = program("helm")
        self._rendered: dict[str, list[Document]] = {}

    def run(self, *arguments: str, given: str = "") -> str:
        done = subprocess.run(
            [self._program, *arguments],
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=_ENDS_S,
        )
        if done.returncode:
            raise Refused(done.stderr + done.stdout)
        return done.stdout

    def template(self, *arguments: str, namespace: str = NAMESPACE) -> list[Document]:
        where = ("template", RELEASE, str(CHART), "--namespace", namespace)
        return list(documents(self.run(*where, *arguments)))

    def rendered(self, values: str) -> list[Document]:
        """Of one of the matrix."""
        if values not in self._rendered:
            self._rendered[values] = self.template(*values_of(values))
        return self._rendered[values]


def documents(text: str) -> Iterator[Document]:
    for document in yaml.safe_load_all(text):
        if document:
            yield document


def values_of(name: str) -> tuple[str, str]:
    return "--values", str(CHART / "ci" / f"{name}.yaml")


def pod_specs(found: Sequence[Document]) -> Iterator[tuple[str, Document]]:
    """Every pod that would run, by who makes it."""
    for document in found:
        name = f"{document['kind']}/{document['metadata']['name']}"
        if document["kind"] == "Pod":
            yield name, document["spec"]
        elif "template" in document.get("spec", {}):
            yield name, document["spec"]["template"]["spec"]
