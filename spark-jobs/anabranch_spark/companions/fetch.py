"""Companion jars on this machine: fetched once, verified each time, and kept.

They come from Maven's client with this machine's settings, or from the repository whose URL
ANABRANCH_MAVEN_URL gives. A jar gets its name only when its checksum is right, so a fetch that was
killed goes on where it stopped, and a jar that was damaged is fetched anew.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen
from xml.sax.saxutils import escape

from anabranch.errors import BadRequest, Unavailable
from anabranch_spark.companions.listing import Jar, Listing, listed

MAVEN_URL = "ANABRANCH_MAVEN_URL"
"""The URL of a Maven repository to fetch from, instead of Maven's client and its settings."""
MAVEN_S = 900.0
"""For all jars of a fetch: a repository that swallows everything would hold us for ever."""
READ_S = 60.0
"""For one read from a repository."""
ATTEMPTS = 3

_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_CHUNK_BYTES = 1 << 20

Say = Callable[[str], None]


def quiet(_: str) -> None:
    """Report no progress."""


def cache() -> Path:
    """Where what takes long to get is kept."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "anabranch"


def obstacle(groups: Iterable[str], listing: Listing | None = None) -> str | None:
    """Why these groups can't be had here, as far as is known without asking a repository."""
    listing = listing or listed()
    folder = cache() / listing.key
    if all((folder / each.file).exists() for each in listing.jars(groups)):
        return None
    if os.environ.get(MAVEN_URL) or shutil.which("mvn"):
        return None
    return f"they aren't here, and there is neither Maven nor {MAVEN_URL} to fetch them with"


def find(groups: Sequence[str], *, listing: Listing | None = None, say: Say = quiet) -> list[str]:
    """Paths of the jars of these groups; what is missing or damaged is fetched.

    One process fetches, and others that ask for the same wait for it. Unavailable if a jar can't be
    had, or isn't what the list says.
    """
    listing = listing or listed()
    wanted = listing.jars(groups)
    folder = cache() / listing.key
    missing = [each for each in wanted if not _is_whole(folder / each.file, each)]
    if missing:
        stands = obstacle(groups, listing)
        if stands is not None and not (os.environ.get(MAVEN_URL) or shutil.which("mvn")):
            raise Unavailable(f"companion jars ({', '.join(groups)})", stands)
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder / "lock"):
            _fetch(
                [each for each in missing if not _is_whole(folder / each.file, each)], folder, say
            )
    return [str(folder / each.file) for each in wanted]


def _fetch(missing: Sequence[Jar], folder: Path, say: Say) -> None:
    if not missing:
        return
    size = sum(each.bytes for each in missing) / 1e6
    say(f"fetching {len(missing)} jars, {size:.0f} MB: once")
    url = os.environ.get(MAVEN_URL)
    if url:
        for each in missing:
            _download(url, each, folder)
            say(f"fetched {each.file}")
    else:
        _by_maven(missing, folder)


def _by_maven(missing: Sequence[Jar], folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        pom, brought = Path(scratch) / "pom.xml", Path(scratch) / "jars"
        pom.write_text(project(missing), encoding="utf-8")
        command = ["mvn", "-q", "-B", "-C", "-f", str(pom), _COPY, f"-DoutputDirectory={brought}"]
        try:
            done = subprocess.run(
                command, check=False, capture_output=True, text=True, cwd=scratch, timeout=MAVEN_S
            )
        except FileNotFoundError:
            raise Unavailable("companion jars", "Maven (mvn) isn't installed") from None
        except subprocess.TimeoutExpired:
            raise Unavailable("companion jars", f"Maven took over {MAVEN_S:.0f} s") from None
        if done.returncode:
            last = " / ".join(done.stdout.strip().splitlines()[-3:])
            raise Unavailable("companion jars", f"Maven couldn't fetch them: {last}")
        for each in missing:
            _place(brought / each.file, each, folder)


def project(jars: Iterable[Jar]) -> str:
    """A Maven project that depends on these jars and on nothing that they depend on."""
    alone = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion>"
    rows = "".join(
        f"<dependency><groupId>{escape(group)}</groupId><artifactId>{escape(artifact)}</artifactId>"
        f"<version>{escape(version)}</version>{alone}</exclusions></dependency>\n"
        for group, artifact, version in (each.coordinates for each in jars)
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>anabranch</groupId><artifactId>companions</artifactId><version>1</version>"
        f"<dependencies>\n{rows}</dependencies></project>\n"
    )


def _download(url: str, jar: Jar, folder: Path) -> None:
    if urlsplit(url).scheme not in ("http", "https"):
        raise BadRequest("fetch companion jars", f"{MAVEN_URL} = {url} is no http(s):// URL")
    part = folder / f"{jar.file}.part"
    fault = ""
    for _ in range(ATTEMPTS):
        try:
            _receive(f"{url.rstrip('/')}/{jar.path}", jar, part)
        except (URLError, OSError) as error:
            fault = str(error)
        else:
            _place(part, jar, folder)
            return
    raise Unavailable(jar.jar, f"{ATTEMPTS} attempts to fetch it failed: {fault}")


def _receive(url: str, jar: Jar, part: Path) -> None:
    """Add to the part what is missing of it, and never more bytes than the jar has."""
    there = part.stat().st_size if part.exists() else 0
    if there >= jar.bytes:
        return
    asked = Request(url, headers={"Range": f"bytes={there}-"} if there else {})  # noqa: S310
    with urlopen(asked, timeout=READ_S) as answer:  # noqa: S310  # the scheme was looked at
        if there and answer.status != 206:
            there = 0
        with part.open("ab" if there else "wb") as file:
            while chunk := answer.read(min(_CHUNK_BYTES, jar.bytes - there)):
                there += len(chunk)
                file.write(chunk)
    if there < jar.bytes:
        raise OSError(f"the answer ended after {there} of {jar.bytes} bytes")


def _place(fetched: Path, jar: Jar, folder: Path) -> None:
    if not _is_whole(fetched, jar):
        # What is kept would be taken for the beginning of a right one.
        fetched.unlink(missing_ok=True)
        raise Unavailable(
            jar.jar, "what was fetched hasn't the size and SHA-256 of companions.toml"
        )
    fetched.replace(folder / jar.file)


def _is_whole(file: Path, jar: Jar) -> bool:
    if not file.exists() or file.stat().st_size != jar.bytes:
        return False
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest() == jar.sha256


@contextmanager
def _alone(path: Path) -> Generator[None]:
    """The lock goes with the process that holds it, whatever ends it."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
