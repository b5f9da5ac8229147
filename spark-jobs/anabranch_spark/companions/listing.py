"""`companions.toml`, checked: the jars of each group, with coordinates, checksums and sizes."""

import difflib
import hashlib
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from anabranch.errors import BadRequest

FILE = Path(__file__).parent.parent / "companions.toml"
JAR_BYTES_MAX = 1 << 28

_PART = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_COORDINATES = re.compile(rf"(?P<group>{_PART}):(?P<artifact>{_PART}):(?P<version>{_PART})")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_ABOUT = frozenset({"spark", "scala"})


class Jar(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One artifact of a Maven repository."""

    jar: str
    """Its coordinates: group, artifact, version."""
    sha256: str
    bytes: int

    def __post_init__(self) -> None:
        # Names become paths: nothing may lead out of the folder that they are put into.
        if not _COORDINATES.fullmatch(self.jar) or ".." in self.jar:
            raise ValueError(f"{self.jar!r} isn't group:artifact:version")
        if not _SHA256.fullmatch(self.sha256):
            raise ValueError(f"the SHA-256 of {self.jar} isn't 64 hexadecimal digits")
        if not 0 < self.bytes <= JAR_BYTES_MAX:
            raise ValueError(f"{self.jar} can't have {self.bytes} bytes")

    @property
    def coordinates(self) -> tuple[str, str, str]:
        group, artifact, version = self.jar.split(":")
        return group, artifact, version

    @property
    def file(self) -> str:
        _, artifact, version = self.coordinates
        return f"{artifact}-{version}.jar"

    @property
    def path(self) -> str:
        """Where a Maven repository has it, relative to the repository's URL."""
        group, artifact, version = self.coordinates
        return f"{group.replace('.', '/')}/{artifact}/{version}/{self.file}"


class Listing(msgspec.Struct, frozen=True):
    """All companions of one version of Spark."""

    spark: str
    groups: dict[str, tuple[Jar, ...]]

    @property
    def key(self) -> str:
        """Names the folder of the jars: another list, or another checksum, has another folder."""
        lines = sorted(
            f"{group} {each.jar} {each.sha256}"
            for group, jars in self.groups.items()
            for each in jars
        )
        return f"spark-{self.spark}-{hashlib.sha256('/'.join(lines).encode()).hexdigest()[:12]}"

    def jars(self, names: Iterable[str]) -> list[Jar]:
        """Those of the named groups, each once; BadRequest if there is no such group."""
        found = dict[str, Jar]()
        for name in names:
            if name not in self.groups:
                near = difflib.get_close_matches(name, self.groups, 1)
                there = (
                    f"did you mean {near[0]}?" if near else f"there are {', '.join(self.groups)}"
                )
                raise BadRequest("fetch companion jars", f"there is no group {name!r}: {there}")
            found |= {each.file: each for each in self.groups[name]}
        return list(found.values())


def parse(text: str) -> Listing:
    """BadRequest if the text can't be a list of companions."""
    try:
        tree = tomllib.loads(text)
        groups = {name: rows for name, rows in tree.items() if name not in _ABOUT}
        return Listing(
            spark=msgspec.convert(tree.get("spark"), str),
            groups=msgspec.convert(groups, dict[str, tuple[Jar, ...]]),
        )
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BadRequest("read the list of companion jars", str(error)) from None


def listed() -> Listing:
    """The companions of the pyspark that this package is made for."""
    return parse(FILE.read_text(encoding="utf-8"))
