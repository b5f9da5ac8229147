"""One file to attach to a report."""

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from anabranch.apps.doctor.collection import Collected
from anabranch.apps.doctor.findings import Finding, as_words


def write(path: Path, found: Collected, said: list[Finding], at_s: float) -> None:
    top = path.name.removesuffix(".tar.gz")
    with tarfile.open(path, "w:gz") as archive:
        for name, content in _files(found, said):
            told = tarfile.TarInfo(f"{top}/{name}")
            told.size, told.mtime = len(content), int(at_s)
            archive.addfile(told, io.BytesIO(content))


def _files(found: Collected, said: list[Finding]) -> Iterator[tuple[str, bytes]]:
    yield "findings.txt", "".join(f"{line}\n" for line in as_words(said)).encode()
    yield "versions.json", _json(found.versions)
    yield "unread.json", _json(found.unread)
    for kind, objects in found.objects.items():
        yield f"objects/{kind}.json", _json(objects)
    for folder, texts in (("logs", found.logs), ("pages", found.pages)):
        for name, text in texts.items():
            yield f"{folder}/{name}", text.encode()


def _json(value: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
