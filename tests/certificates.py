"""Certificates for tests of TLS, made by openssl."""

import subprocess
from pathlib import Path

import pytest

from anabranch.shell.tls import TlsSettings


def certified(folder: Path) -> TlsSettings:
    """A certificate for this machine's loopback, by an authority of its own."""
    folder.mkdir()

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    named = ["-addext", "subjectAltName=IP:127.0.0.1"]
    try:
        openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca", "-subj", "/CN=ca")
        openssl("req", *key, "-keyout", "key", "-out", "csr", "-subj", "/CN=peer", *named)
        openssl(
            *("x509", "-req", "-in", "csr", "-CA", "ca", "-CAkey", "ca.key", "-CAcreateserial"),
            *("-copy_extensions", "copy", "-out", "cert"),
        )
    except FileNotFoundError:
        pytest.skip("openssl isn't installed")
    return TlsSettings(cert=str(folder / "cert"), key=str(folder / "key"), ca=str(folder / "ca"))
