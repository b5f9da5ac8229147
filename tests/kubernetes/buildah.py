"""buildah on a storage of its own: it needs no daemon, and touches nobody's images."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from anabranch.apps.processes.binaries import cache
from anabranch.core.errors import Unavailable

BUILD_S = 3_600.0
CHROOT = ("--isolation", "chroot", "--layers")

_TRUSTED = "/run/secrets/ca"
_OWN = ("cert", "find-links", "no-index")
"""Of pip's settings, those that name a place on this machine."""


class Buildah:
    """Each command is waited for; what it said is told if it failed."""

    def __init__(self) -> None:
        if shutil.which("buildah") is None:
            reason = "it builds images, and isn't installed: apt-get install buildah"
            raise Unavailable("buildah", reason)
        storage = cache() / "images" / "storage"
        self._command = (
            *("buildah", "--storage-driver", "overlay"),
            *("--root", str(storage / "root"), "--runroot", str(storage / "run")),
        )

    def has(self, name: str) -> bool:
        return self._done("inspect", "--type", "image", name).returncode == 0

    def build(self, name: str, context: Path, *options: str) -> None:
        self._must("build", *CHROOT, *options, "--tag", name, str(context))

    def save(self, name: str, reference: str, to: Path) -> None:
        """As an archive that `ctr images import` and `docker load` take."""
        self._must("push", "--quiet", name, f"docker-archive:{to}:{reference}")

    def _must(self, *arguments: str) -> None:
        done = self._done(*arguments)
        if done.returncode:
            said = " / ".join(done.stdout.strip().splitlines()[-5:])
            raise Unavailable(f"the image of `buildah {' '.join(arguments)}`", said)

    def _done(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._command, *arguments],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=BUILD_S,
        )


@contextmanager
def pip_secrets() -> Iterator[Sequence[str]]:
    """Options that let a build fetch packages as this machine's pip does, and forget how."""
    settings = _pip_settings()
    certificates = settings.get("cert")
    told = [f"{key} = {value}" for key, value in settings.items() if key not in _OWN]
    options: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        if certificates:
            told.append(f"cert = {_TRUSTED}")
            options += ["--secret", f"id=ca,src={certificates}"]
        config = Path(folder) / "pip.conf"
        config.touch(0o600)
        config.write_text("\n".join(["[global]", *told, ""]), encoding="utf-8")
        yield [*options, "--secret", f"id=pip,src={config}"]


def _pip_settings() -> dict[str, str]:
    """As pip lists them, `global.cert='...'`: the environment's are its last word."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    found: dict[str, str] = {}
    for scope in ("global.", "install.", "user.", ":env:."):
        for line in listed:
            key, _, value = line.partition("=")
            if key.startswith(scope):
                found[key.removeprefix(scope)] = value.strip("'")
    return found
