"""The images that a cluster needs, as archives, built without a registry.

`python -m tests.kubernetes.image` builds what is missing and prints where. Ours are built by the
Dockerfile; a base that nobody can pull here is made by debootstrap: Debian with its Python.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.kubernetes.binaries import COREDNS, PAUSE, of_debian
from tests.kubernetes.buildah import Buildah, pip_secrets

from anabranch.apps.processes.binaries import ETCD, VERSITYGW, Server, alone, cache, find
from anabranch.core.errors import Unavailable

ROOT = Path(__file__).resolve().parents[2]
SUITE = "bookworm"
BASE = f"localhost/anabranch-base:{SUITE}"
TOOLS = f"localhost/anabranch-tools:{SUITE}"

_BASE_FILE = """\
FROM scratch
ADD root.tar /
RUN mkdir -p /dev /proc /sys
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
"""
_TOOLS_FILE = f"""\
FROM {BASE}
RUN apt-get update -q && apt-get install -y -q --no-install-recommends python3-venv
"""
_ELSEWHERE = ("dev", "proc", "sys")
_UNREAD = ("usr/share/doc", "usr/share/man", "usr/share/locale", "var/lib/apt/lists")
_SOURCES = (
    *(".dockerignore", "Dockerfile", "LICENSE", "pyproject.toml"),
    *("operator", "services", "spark-jobs"),
)


@dataclass(frozen=True, slots=True)
class Image:
    reference: str
    key: str
    """What it is made of: another key, another archive."""
    build: Callable[[Buildah, str], None]

    @property
    def archive(self) -> Path:
        name = self.reference.replace("/", "-").replace(":", "-")
        return cache() / "images" / f"{name}-{self.key}.tar"


def images() -> tuple[Image, ...]:
    return (
        _ours("anabranch/anabranch", "services", "cluster"),
        _ours("anabranch/anabranch-operator", "operator", "operator"),
        _ours("anabranch/anabranch-spark", "spark", "spark"),
        _with("anabranch/dev-etcd", "dev-etcd", ETCD),
        _with("anabranch/dev-s3", "dev-s3", VERSITYGW),
        Image(pause_reference(), PAUSE.place.parent.name, partial(_binary, PAUSE)),
        Image(coredns_reference(), COREDNS.place.parent.name, partial(_binary, COREDNS)),
        Image("localhost/busybox:1", SUITE, _busybox),
    )


def pause_reference() -> str:
    return f"localhost/pause:{PAUSE.version}"


def coredns_reference() -> str:
    return f"localhost/coredns:{COREDNS.version}"


def archives(names: Sequence[str] = ()) -> list[Path]:
    """Of all images, or of those whose reference begins so; built if they aren't there."""
    wanted = [each for each in images() if not names or each.reference.startswith(tuple(names))]
    for image in wanted:
        image.archive.parent.mkdir(parents=True, exist_ok=True)
        with alone(cache() / "images" / "lock"):
            if not image.archive.exists():
                _make(image)
    return [image.archive for image in wanted]


def _make(image: Image) -> None:
    sys.stderr.write(f"building the image {image.reference}\n")
    buildah = Buildah()
    image.build(buildah, image.reference)
    fresh = image.archive.with_suffix(".fresh")
    fresh.unlink(missing_ok=True)
    buildah.save(image.reference, image.reference, fresh)
    fresh.replace(image.archive)
    for older in image.archive.parent.glob(f"{image.archive.stem.removesuffix(image.key)}*.tar"):
        if older != image.archive:
            older.unlink()


def _ours(repository: str, target: str, requirements: str) -> Image:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    locks = [f"requirements/{name}.txt" for name in ("build", requirements)]
    key = _checksum([*_SOURCES, *locks])
    return Image(f"{repository}:{told['project']['version']}", key, partial(_by_target, target))


def _by_target(target: str, buildah: Buildah, name: str) -> None:
    _make_bases(buildah)
    bases = ("--build-arg", f"BASE={BASE}", "--build-arg", f"TOOLS={TOOLS}")
    with pip_secrets() as secrets:
        buildah.build(name, ROOT, "--target", target, *bases, *secrets)


def _with(repository: str, target: str, server: Server) -> Image:
    checksum = hashlib.sha256(server.place.parent.name.encode())
    checksum.update((ROOT / "Dockerfile").read_bytes())
    key = checksum.hexdigest()[:12]
    return Image(f"{repository}:{server.version}", key, partial(_server, target, server))


def _server(target: str, server: Server, buildah: Buildah, name: str) -> None:
    """The Dockerfile's stage that would build the binary is replaced by ours, already built."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "binary" / server.name
        place.parent.mkdir()
        shutil.copy(find(server), place)
        stage = f"{server.name}={folder}"
        buildah.build(name, ROOT, "--target", target, "--build-context", stage)


def _binary(server: Server, buildah: Buildah, name: str) -> None:
    entry = f'ENTRYPOINT ["/{server.name}"]'
    _static(buildah, name, {server.name: Path(find(server))}, [entry])


def _busybox(buildah: Buildah, name: str) -> None:
    files = {"bin/busybox": of_debian("busybox-static", "bin/busybox")}
    install = 'RUN ["/bin/busybox", "--install", "-s", "/bin"]'
    _static(buildah, name, files, [install, "ENV PATH=/bin", "USER 65532:65532", 'CMD ["sh"]'])


def _static(buildah: Buildah, name: str, files: Mapping[str, Path], steps: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for path, source in files.items():
            (Path(folder) / path).parent.mkdir(exist_ok=True)
            shutil.copy(source, Path(folder) / path)
        told = ["FROM scratch", *(f"COPY {path} /{path}" for path in files), *steps]
        (Path(folder) / "Dockerfile").write_text("\n".join(told), encoding="utf-8")
        buildah.build(name, Path(folder))


def _make_bases(buildah: Buildah) -> None:
    for name, text in ((BASE, _BASE_FILE), (TOOLS, _TOOLS_FILE)):
        if not buildah.has(name):
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "Dockerfile").write_text(text, encoding="utf-8")
                if name == BASE:
                    _debian_root(Path(folder))
                buildah.build(name, Path(folder))


def _debian_root(folder: Path) -> None:
    """`root.tar`: the smallest Debian, with Python and the certificates of the world."""
    root = folder / "root"
    wanted = "--include=python3,ca-certificates"
    _run("debootstrap", "--variant=minbase", wanted, SUITE, str(root))
    for path in _UNREAD:
        shutil.rmtree(root / path, ignore_errors=True)
    for package in (root / "var/cache/apt/archives").glob("*.deb"):
        package.unlink()
    left_out = [f"--exclude=./{name}" for name in _ELSEWHERE]
    _run("tar", "-C", str(root), *left_out, "-cf", str(folder / "root.tar"), ".")
    shutil.rmtree(root)


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    except FileNotFoundError:
        reason = f"{command[0]} isn't installed: apt-get install {command[0]}"
        raise Unavailable("an image's base", reason) from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise Unavailable("an image's base", f"{command[0]} failed: {' / '.join(said[-3:])}")


def _checksum(names: Sequence[str]) -> str:
    checksum = hashlib.sha256()
    for path in _files(names):
        checksum.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return checksum.hexdigest()[:12]


def _files(names: Sequence[str]) -> Iterator[Path]:
    """In one order on every machine; what Python leaves beside sources isn't one."""
    for name in names:
        path = ROOT / name
        found = sorted(path.rglob("*")) if path.is_dir() else [path]
        yield from (each for each in found if each.is_file() and "__pycache__" not in each.parts)


def main(names: list[str]) -> int:
    try:
        for archive in archives(names):
            sys.stdout.write(f"{archive}\n")
    except Unavailable as refused:
        sys.stderr.write(f"{refused.message}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
