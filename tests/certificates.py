"""Certificates for tests of TLS, made by openssl."""

import subprocess
from pathlib import Path

import pytest

from anabranch.shell.net.tls import TlsSettings

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
LOOPBACK = "IP:127.0.0.1"


class Issuer:
    """An authority, and what it has signed, in a folder of its own."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        folder.mkdir()
        self.folder = folder
        self._openssl("req", "-x509", *_KEY, "-keyout", "ca.key", "-out", "ca", *_subject(name))

    @property
    def certificate(self) -> str:
        return (self.folder / "ca").read_text()

    def issue(self, name: str = "peer", names: str = LOOPBACK) -> TlsSettings:
        """Files with a certificate for these names, and with this authority to check others by."""
        folder = self.folder / name
        folder.mkdir()
        files = [f"{name}/{each}" for each in ("key", "csr", "cert")]
        key, request, certificate = files
        alternative = ("-addext", f"subjectAltName={names}")
        self._openssl("req", *_KEY, "-keyout", key, "-out", request, *_subject(name), *alternative)
        signed = ("-CA", "ca", "-CAkey", "ca.key", "-CAcreateserial", "-copy_extensions", "copy")
        self._openssl("x509", "-req", "-in", request, *signed, "-out", certificate)
        return TlsSettings(
            cert=str(folder / "cert"), key=str(folder / "key"), ca=str(self.folder / "ca")
        )

    def _openssl(self, *arguments: str) -> None:
        command = ["openssl", *arguments]
        try:
            subprocess.run(command, cwd=self.folder, check=True, capture_output=True)
        except FileNotFoundError:
            pytest.skip("openssl isn't installed")


def certified(folder: Path) -> TlsSettings:
    """A certificate for this machine's loopback, by an authority of its own."""
    return Issuer(folder).issue()


def _subject(name: str) -> tuple[str, str]:
    return "-subj", f"/CN={name}"
