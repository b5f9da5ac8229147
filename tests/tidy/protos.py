"""Compiles the .proto files of the services: `make protos`.

What comes out is committed, so that nobody needs the compiler to run or install the log.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCES = ("anabranch/shell/etcd/api/etcd.proto",)
_PIECE_CHARS_MAX = 88
_GENERATED = "# type: ignore\n"
_DESCRIPTOR = re.compile(r"AddSerializedFile\(b'(?P<content>.*)'\)$", re.MULTILINE)
_BYTE = re.compile(r"\\x[0-9a-f]{2}|\\[0-7]{3}|\\.|[^\\]")


def compiled(services: Path) -> dict[Path, str]:
    """What the compiler makes of every source, by path below `services`."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{services}"]
        outputs = [f"--python_out={out}", f"--pyi_out={out}"]
        subprocess.run([*command, *outputs, *SOURCES], check=True)
        made = sorted(path for path in Path(out).rglob("*") if path.is_file())
        return {path.relative_to(out): _fit(path.suffix, path.read_text()) for path in made}


def _fit(suffix: str, text: str) -> str:
    """Lines no longer than the house's, and a stub that strict type checking can read."""
    if suffix == ".pyi":
        text = text.replace(", Mapping as _Mapping", "")
        return re.sub(r"_Union\[(\w+), _Mapping\]", r"\1", text)
    return _GENERATED + _DESCRIPTOR.sub(_in_pieces, text)


def _in_pieces(found: re.Match[str]) -> str:
    pieces = [""]
    for byte in _BYTE.findall(found["content"]):
        if len(pieces[-1]) + len(byte) > _PIECE_CHARS_MAX:
            pieces.append("")
        pieces[-1] += byte
    lines = "".join(f"    b'{piece}'\n" for piece in pieces)
    return f"AddSerializedFile(\n{lines})"


if __name__ == "__main__":
    services = Path(__file__).resolve().parents[2] / "services"
    for path, text in compiled(services).items():
        (services / path).write_text(text)
